// SPDX-License-Identifier: Apache-2.0
#include "core/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "toto/error.hpp"

namespace toto {
namespace {

void check(int result) {
  if (result != 1) throw Error(ExitStatus::internal, "internal", "OpenSSL refuses SHA-256");
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  check(state_->context ? EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) : 0);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest;
  check(EVP_DigestFinal_ex(state_->context, digest.data(), nullptr));
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace toto
