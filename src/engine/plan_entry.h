// SPDX-License-Identifier: Apache-2.0
// What the plan cache remembers for one model on one kind of machine, and its form on disk.
//
//     "totoplan"    8 bytes
//     format        u32, kPlanFormat
//     size          u32, bytes of the body: all that follows the checksum
//     checksum      the first 32 hexadecimal digits of the SHA-256 of everything else, in order
//     body          the key's five strings, kernel choices, shapes
//
// Numbers are little-endian whatever the machine; strings are a u16 length and printable ASCII.
// Nothing in such a file is trusted: any other bytes than those written are not an entry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace toto {

inline constexpr std::uint32_t kPlanFormat = 1;
inline constexpr std::size_t kMaxPlanEntryBytes = 1 << 20;
inline constexpr std::size_t kMaxPlanText = 128;  // bytes of a string
inline constexpr std::size_t kMaxKernelChoices = 2048;
inline constexpr std::size_t kMaxPlanShapes = 32;  // all are built again at every start

/// The version of this program, as plans know it.
std::string_view plan_program_version();

/// What an entry is valid for.
struct PlanCacheKey {
  std::string program = std::string(plan_program_version());
  std::string model;  // hash of its contents
  std::string isa;    // instruction set of the kernels
  std::string type;   // of weights and arithmetic
  std::string device;
  bool operator==(const PlanCacheKey&) const = default;
};

/// The kernel measured to be the fastest for a product with weights [n][k].
struct KernelChoice {
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  std::string tag;  // epilogue and type
  std::uint32_t candidate = 0;
  std::uint64_t nanoseconds = 0;  // what was measured
  bool operator==(const KernelChoice&) const = default;
};

/// A shape that plans were built for, to be built again at the start.
struct PlanShape {
  std::uint32_t batch = 0;  // series in one call
  std::uint32_t variates = 0;
  std::uint32_t context = 0;  // steps
  std::uint32_t horizon = 0;  // steps
  std::uint32_t samples = 0;  // 0: none
  bool operator==(const PlanShape&) const = default;
};

/// Whether a forecast can have this shape: what is built again must not be sized by a file.
bool is_plan_shape(const PlanShape& shape);

struct PlanEntry {
  std::vector<KernelChoice> choices;  // at most kMaxKernelChoices
  std::vector<PlanShape> shapes;      // at most kMaxPlanShapes, the latest first
  bool operator==(const PlanEntry&) const = default;
};

struct KeyedPlanEntry {
  PlanCacheKey key;
  PlanEntry entry;
  bool operator==(const KeyedPlanEntry&) const = default;
};

/// `first` and whatever `second` has in addition, each thing once, up to the limits.
PlanEntry merge(const PlanEntry& first, const PlanEntry& second);

/// The file. Throws Error (70) internal for texts that are too long or not printable ASCII; too
/// many choices or shapes, and shapes that cannot be, are what merge() leaves out.
std::string encode(const KeyedPlanEntry& entry);

/// Nothing for bytes that encode() did not make. Allocates no more than a small multiple of what
/// the bytes can hold.
std::optional<KeyedPlanEntry> decode(std::string_view bytes);

/// A file with any body: what a test of decode() needs.
std::string seal_plan(std::string_view body);

}  // namespace toto
