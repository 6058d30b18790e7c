"""compare.py's result as Markdown. Pure."""
import statistics


def engine_list(result):
    """Every engine's version and KV type, once, in order."""
    seen = {}
    for model in result["models"]:
        for part in [*model["cases"], *([model["start"]] if "start" in model else [])]:
            for engine in part["engines"]:
                seen.setdefault(engine["name"], engine)
    return list(seen.values())


def ratio_of(ours, theirs):
    """Median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


def work_name(case, row):
    if row["work"] == "prefill":
        return f"prefill {row['amount']}"
    behind = f" behind {case['depth']}" if case["depth"] else ""
    return f"decode, {row['amount']} stream{'s' if row['amount'] > 1 else ''}{behind}"


def share_text(row):
    int8 = statistics.median(share[0] for share in row["shares"])
    if row["work"] == "prefill":
        return f"{int8 * 100:.0f} % int8"
    read = statistics.median(share[1] for share in row["shares"])
    return f"{read * 100:.0f} % read, {int8 * 100:.0f} % int8"


def rate_table(result):
    peers = [engine["name"] for engine in engine_list(result) if engine["name"] != "headrace"]
    head = ["model", "work", "headrace tok/s", "share of limit"]
    for peer in peers:
        head += [f"{peer} tok/s", "ratio"]
    lines = [intro(result), "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    notes = []
    for model in result["models"]:
        for case in model["cases"]:
            notes += [f"{model['name']}: {note}" for note in case["notes"]]
            for row in case["rows"]:
                ours = row["rates"]["headrace"]
                cells = [model["name"], work_name(case, row), f"{statistics.median(ours):.1f}", share_text(row)]
                for peer in peers:
                    theirs = row["rates"].get(peer)
                    cells += [f"{statistics.median(theirs):.1f}", f"{ratio_of(ours, theirs):.2f}x"] if theirs else ["–", "–"]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines + [""] + foot(result, notes)) + "\n"


def start_table(result):
    peers = [engine["name"] for engine in engine_list(result)]
    head = ["model", "headrace s"]
    for peer in peers:
        head += [f"{peer} s", "ratio"]
    lines = [intro(result), "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    notes = []
    for model in result["models"]:
        seconds = model["start"]["seconds"]
        notes += [f"{model['name']}: {note}" for note in model["start"]["notes"]]
        cells = [model["name"], f"{seconds['headrace']:.2f}"]
        for peer in peers:
            theirs = seconds.get(peer)
            cells += [f"{theirs:.2f}", f"{theirs / seconds['headrace']:.2f}x"] if theirs else ["–", "–"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines + [""] + foot(result, notes)) + "\n"


def intro(result):
    return f"{result['cpu']}, {result['threads']} threads, medians of {result['rounds']} alternating rounds."


def foot(result, notes):
    lines = [f"* {engine['version']}: KV {engine['kv']}" for engine in engine_list(result)]
    limits = [case["limits"] for model in result["models"] for case in model["cases"]]
    if limits:
        lines.append(f"* Limits: int8 {statistics.median(x['int8_ops_per_s'] for x in limits) / 1e9:.0f} Gop/s, float "
                     f"{statistics.median(x['f32_flop_per_s'] for x in limits) / 1e9:.0f} Gflop/s, memory "
                     f"{statistics.median(x['memory_read_bytes_per_s'] for x in limits) / 1e9:.1f} GB/s; a decode's read "
                     "share is of a buffer as large as what it reads")
    return lines + [f"* {note}" for note in dict.fromkeys(notes)]
