// SHA-256 of bytes that come in pieces (FIPS 180-4, by OpenSSL). One thread an object.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace headrace {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  // An independent sum that goes on from here.
  [[nodiscard]] Sha256 copy() const;

  void update(std::span<const std::byte> bytes);

  // The sum of all bytes so far, as 64 lower-case hex digits. More may be added afterwards.
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
