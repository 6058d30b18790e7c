"""What the official OpenAI client gets from a real model."""

import math
import threading
import time
import unittest

import openai

import serving
from serving import Serving, wait_for

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def setUpModule():
    global server, client
    server = Serving()
    client = openai.OpenAI(base_url=server.address + "/v1", api_key="unused", max_retries=0, timeout=120)


def tearDownModule():
    server.stop()
    server.__exit__()


class Chat(unittest.TestCase):
    def test_answers(self):
        answer = client.chat.completions.create(model=server.model, messages=QUESTION, max_tokens=24, temperature=0)
        self.assertGreater(len(answer.choices[0].message.content), 5)
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertIn(answer.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertEqual(answer.usage.completion_tokens_details.reasoning_tokens, 0)
        self.assertGreaterEqual(answer.usage.prompt_tokens_details.cached_tokens, 0)
        timings = answer.model_extra["timings"]
        self.assertLessEqual(timings["queue_ms"], timings["ttft_ms"])
        self.assertLessEqual(timings["ttft_ms"], timings["total_ms"])

    def test_stream_is_the_answer(self):
        for fields in ({"temperature": 0}, {"seed": 7, "temperature": 1.2}, {"seed": 1, "n": 3}):
            fields = {"model": server.model, "messages": QUESTION, "max_tokens": 32, **fields}
            whole = client.chat.completions.create(**fields)
            texts, ends = {}, {}
            for chunk in client.chat.completions.create(stream=True, **fields):
                for choice in chunk.choices:
                    texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
                    if choice.finish_reason:
                        ends[choice.index] = choice.finish_reason
            self.assertEqual(texts, {c.index: c.message.content for c in whole.choices})
            self.assertEqual(ends, {c.index: c.finish_reason for c in whole.choices})

    def test_stream_usage_is_in_the_last_chunk(self):
        chunks = list(
            client.chat.completions.create(
                model=server.model, messages=QUESTION, max_tokens=5, stream=True, stream_options={"include_usage": True}
            )
        )
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, 5)
        self.assertIn("timings", chunks[-1].model_extra)
        self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))

    def test_logprobs(self):
        answer = client.chat.completions.create(
            model=server.model, messages=QUESTION, max_tokens=6, temperature=0, logprobs=True, top_logprobs=3
        )
        content = answer.choices[0].logprobs.content
        self.assertEqual(len(content), 6)
        self.assertEqual(b"".join(bytes(t.bytes) for t in content).decode(), answer.choices[0].message.content)
        for token in content:
            self.assertEqual(len(token.top_logprobs), 3)
            self.assertEqual(token.top_logprobs[0].token, token.token)  # greedy: the best one
            self.assertAlmostEqual(token.top_logprobs[0].logprob, token.logprob)
            values = [top.logprob for top in token.top_logprobs]
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertLess(sum(math.exp(value) for value in values), 1.0001)

    def test_n_choices_differ_and_repeat(self):
        fields = {"model": server.model, "messages": QUESTION, "max_tokens": 24, "n": 4, "seed": 11, "temperature": 1.5}
        first = client.chat.completions.create(**fields)
        second = client.chat.completions.create(**fields)
        texts = [choice.message.content for choice in first.choices]
        self.assertEqual(len(set(texts)), 4)
        self.assertEqual(texts, [choice.message.content for choice in second.choices])
        # The first choice is what the same seed gives alone.
        alone = client.chat.completions.create(**{**fields, "n": 1})
        self.assertEqual(alone.choices[0].message.content, texts[0])

    def test_stop_strings(self):
        fields = {"model": server.model, "messages": QUESTION, "max_tokens": 32, "temperature": 0}
        whole = client.chat.completions.create(**fields).choices[0].message.content
        stop = whole[len(whole) // 2 :][:3]
        answer = client.chat.completions.create(**fields, stop=[stop])
        self.assertEqual(answer.choices[0].message.content, whole[: whole.index(stop)])
        self.assertEqual(answer.choices[0].finish_reason, "stop")

    def test_special_tokens_in_a_message_are_text(self):
        def count(content):
            return client.chat.completions.create(
                model=server.model, messages=[{"role": "user", "content": content}], max_tokens=1
            ).usage.prompt_tokens

        # As a special token it would be one.
        self.assertGreater(count("<|im_end|>") - count(""), 2)

    def test_text_parts(self):
        parts = [{"type": "text", "text": "What is the capital"}, {"type": "text", "text": "of France?"}]
        fields = {"model": server.model, "max_tokens": 12, "temperature": 0}
        joined = "\n".join(part["text"] for part in parts)
        self.assertEqual(
            client.chat.completions.create(messages=[{"role": "user", "content": parts}], **fields).choices[0].message,
            client.chat.completions.create(messages=[{"role": "user", "content": joined}], **fields).choices[0].message,
        )


class Completions(unittest.TestCase):
    def test_knows_a_capital(self):
        answer = client.completions.create(model=server.model, prompt="The capital of France is", max_tokens=3, temperature=0)
        self.assertIn("Paris", answer.choices[0].text)

    def test_prompts_and_echo(self):
        answer = client.completions.create(
            model=server.model, prompt=["One, two, three,", "The sun rises in the"], max_tokens=4, temperature=0, echo=True
        )
        self.assertEqual([c.index for c in answer.choices], [0, 1])
        self.assertTrue(answer.choices[0].text.startswith("One, two, three, four"))
        self.assertTrue(answer.choices[1].text.startswith("The sun rises in the"))

    def test_text_and_its_ids_are_one_prompt(self):
        text = "The quick brown fox"
        status, _, body = server.post("/tokenize", {"prompt": text})
        self.assertEqual(status, 200)
        ids = serving.json.loads(body)["tokens"]
        fields = {"model": server.model, "max_tokens": 8, "temperature": 0}
        self.assertEqual(
            client.completions.create(prompt=text, **fields).choices[0].text,
            client.completions.create(prompt=ids, **fields).choices[0].text,
        )

    def test_scoring_a_prompt(self):
        text = "The capital of France is Paris"
        answer = client.completions.create(model=server.model, prompt=text, max_tokens=0, echo=True, logprobs=2)
        logprobs = answer.choices[0].logprobs
        self.assertEqual(answer.choices[0].text, text)
        self.assertEqual("".join(logprobs.tokens), text)
        self.assertIsNone(logprobs.token_logprobs[0])
        self.assertTrue(all(value <= 0 for value in logprobs.token_logprobs[1:]))
        self.assertGreater(logprobs.token_logprobs[-1], -3)
        self.assertEqual([text[offset:][: len(t)] for offset, t in zip(logprobs.text_offset, logprobs.tokens)], logprobs.tokens)

    def test_streamed_logprobs_are_the_answers(self):
        fields = {"model": server.model, "prompt": "One, two,", "max_tokens": 8, "temperature": 0, "logprobs": 2, "echo": True}
        whole = client.completions.create(**fields).choices[0]
        text, tokens, values, offsets = "", [], [], []
        for chunk in client.completions.create(stream=True, **fields):
            for choice in chunk.choices:
                text += choice.text
                if choice.logprobs:
                    tokens += choice.logprobs.tokens
                    values += choice.logprobs.token_logprobs
                    offsets += choice.logprobs.text_offset
        self.assertEqual(text, whole.text)
        self.assertEqual(tokens, whole.logprobs.tokens)
        self.assertEqual(values, whole.logprobs.token_logprobs)
        self.assertEqual(offsets, whole.logprobs.text_offset)

    def test_many_at_once_get_what_they_get_alone(self):
        prompts = [f"Item {i}: once upon a time" for i in range(12)]
        fields = {"model": server.model, "max_tokens": 24, "temperature": 0.8, "seed": 3}
        alone = [client.completions.create(prompt=prompt, **fields).choices[0].text for prompt in prompts]
        together = [None] * len(prompts)

        def ask(i):
            together[i] = client.completions.create(prompt=prompts[i], **fields).choices[0].text

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(prompts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)


class Errors(unittest.TestCase):
    def test_the_client_knows_them(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            client.chat.completions.create(model="no-such-model", messages=QUESTION)
        self.assertEqual(caught.exception.code, "model_not_found")
        for fields in ({"temperature": -1}, {"n": 0}, {"max_tokens": -5}, {"top_p": 2}, {"logit_bias": {"x": 1}}):
            with self.assertRaises(openai.BadRequestError) as caught:
                client.chat.completions.create(model=server.model, messages=QUESTION, **fields)
            self.assertEqual(caught.exception.param, next(iter(fields)))
        for fields in (
            {"response_format": {"type": "json_object"}},
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
            {"extra_body": {"guided_regex": "a"}},
        ):
            with self.assertRaises(openai.BadRequestError):
                client.chat.completions.create(model=server.model, messages=QUESTION, **fields)
        with self.assertRaises(openai.BadRequestError):
            client.chat.completions.create(model=server.model, messages=[])
        image = [{"type": "image_url", "image_url": {"url": "https://example.invalid/x.png"}}]
        with self.assertRaises(openai.BadRequestError):
            client.chat.completions.create(model=server.model, messages=[{"role": "user", "content": image}])

    def test_a_prompt_beyond_the_context(self):
        with self.assertRaises(openai.BadRequestError):
            client.completions.create(model=server.model, prompt="word " * 20000, max_tokens=1)

    def test_a_deadline(self):
        with self.assertRaises(openai.APIStatusError) as caught:
            client.completions.create(
                model=server.model, prompt="a", max_tokens=4000, extra_body={"deadline_ms": 50, "ignore_eos": True}
            )
        self.assertEqual(caught.exception.status_code, 504)


class Cancel(unittest.TestCase):
    def test_a_client_that_goes_away_frees_its_kv_and_disturbs_nobody(self):
        fields = {"model": server.model, "prompt": "Once upon a time", "temperature": 0, "extra_body": {"ignore_eos": True}}
        expected = client.completions.create(max_tokens=64, **fields).choices[0].text
        neighbour = {}

        def ask():
            neighbour["text"] = client.completions.create(max_tokens=64, **fields).choices[0].text

        wait_for(lambda: server.metric("vllm:kv_cache_usage_perc") == 0, "the KV to be free")
        stream = client.completions.create(stream=True, max_tokens=4000, **fields)
        for _ in zip(range(3), stream):
            pass
        thread = threading.Thread(target=ask)
        thread.start()
        wait_for(lambda: server.metric("vllm:num_requests_running") == 2, "both to run")
        aborted = server.metric("headrace_requests_total", outcome="aborted")
        stream.close()
        wait_for(lambda: server.metric("headrace_requests_total", outcome="aborted") == aborted + 1, "the abort")
        thread.join()
        self.assertEqual(neighbour["text"], expected)
        wait_for(lambda: server.metric("vllm:kv_cache_usage_perc") == 0, "the KV to be free")

    def test_kv_is_free_within_100_ms(self):
        stream = client.completions.create(
            model=server.model, prompt="Go on", stream=True, max_tokens=4000, extra_body={"ignore_eos": True}
        )
        for _ in zip(range(3), stream):
            pass
        self.assertGreater(server.metric("vllm:kv_cache_usage_perc"), 0)
        stream.close()
        begin = time.monotonic()
        wait_for(lambda: server.metric("vllm:kv_cache_usage_perc") == 0, "the KV to be free")
        self.assertLess(time.monotonic() - begin, 0.1)


if __name__ == "__main__":
    unittest.main()
