#include "hub/sha256.h"

#include <array>
#include <openssl/evp.h>

#include "base/check.h"

namespace headrace {

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  HR_CHECK(state_->context != nullptr);
  HR_CHECK(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256 Sha256::copy() const {
  Sha256 other;
  HR_CHECK(EVP_MD_CTX_copy_ex(other.state_->context.get(), state_->context.get()) == 1);
  return other;
}

void Sha256::update(std::span<const std::byte> bytes) {
  HR_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() const {
  const Sha256 finished = copy();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  HR_CHECK(EVP_DigestFinal_ex(finished.state_->context.get(), digest.data(), &length) == 1);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text += kDigits[digest[i] >> 4U];
    text += kDigits[digest[i] & 15U];
  }
  return text;
}

}  // namespace headrace
