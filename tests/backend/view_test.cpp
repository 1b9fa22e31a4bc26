// SPDX-License-Identifier: Apache-2.0
// Views: their sizes, what becomes of their memory, and what they refuse.
#include "backend/view.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "toto/error.hpp"

namespace toto {
namespace {

/// What an action throws: "code: message".
template <typename Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ExitStatus::internal);
    return std::string(e.code()) + ": " + e.what();
  }
  return {};
}

TEST(View, RowsInBfloat16AreWholeSixteenBytes) {
  std::array<float, 60> memory{};
  const View v = view_of(memory.data(), 5, 12);
  EXPECT_EQ(v.type, ElementType::f32);
  EXPECT_EQ(v.stride(), 12);
  EXPECT_EQ(v.bytes(), 240);
  const View narrow = v.as(ElementType::bf16, 5, 12);
  EXPECT_EQ(narrow.stride(), 16);
  EXPECT_EQ(narrow.bytes(), 160);
  EXPECT_EQ(narrow.elements(), 60);
  EXPECT_EQ(narrow.data, memory.data());
}

TEST(View, IsAnotherMatrixOnlyWhereThatFits) {
  std::array<double, 24> memory{};
  const View v = view_of(memory.data(), 4, 6);
  EXPECT_EQ(v.shaped(12, 2).rows.count, 12);
  EXPECT_EQ(v.shaped(2, 12).width, 12);
  EXPECT_EQ(v.shaped(1, 6).data, memory.data());
  EXPECT_NE(refusal([&] { (void)v.shaped(5, 5); }).find("view_size"), std::string::npos);
  EXPECT_NE(refusal([&] { (void)v.as(ElementType::bf16, 4, 25); }).find("view_size"),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)v.shaped(0, std::int64_t{1} << 33); }).find("view_size"),
            std::string::npos);
}

TEST(View, RowsFromOneOn) {
  std::array<float, 24> memory{};
  const ConstView v = view_of(memory.data(), 4, 6);
  EXPECT_EQ(typed<float>(v.from(3, 1)), memory.data() + 18);
  EXPECT_EQ(static_cast<const std::byte*>(
                view_of(memory.data(), 4, 6).as(ElementType::bf16, 4, 6).from(2, 2).data),
            reinterpret_cast<const std::byte*>(memory.data()) + 32);
  EXPECT_NE(refusal([&] { (void)v.from(3, 2); }).find("view_size"), std::string::npos);
  EXPECT_NE(refusal([&] { (void)v.from(-1, 1); }).find("view_size"), std::string::npos);
}

TEST(View, ElementsOfAnotherTypeAreRefusedByName) {
  std::array<double, 6> memory{};
  const View v = view_of(memory.data(), 2, 3);
  EXPECT_EQ(typed<double>(v), memory.data());
  EXPECT_EQ(typed<double>(ConstView(v)), memory.data());
  EXPECT_NE(refusal([&] { (void)typed<float>(v); }).find("expected float32, found float64"),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)typed<float>(ConstView(v)); }).find("view_type"),
            std::string::npos);
  EXPECT_EQ(typed<float>(View{}), nullptr);
}

TEST(View, AnOperationNamesWhatItExpects) {
  std::array<float, 6> memory{};
  const ConstView v = view_of(memory.data(), 2, 3);
  EXPECT_EQ(refusal([&] { expect("x", v, ElementType::f32, 2, 3); }), "");
  EXPECT_EQ(refusal([&] { expect("x", v, ElementType::f32, 1, 3); }),
            "");  // there may be more rows
  EXPECT_NE(refusal([&] {
              expect("linear: x", v, ElementType::f32, 3, 3);
            }).find("linear: x: expected at least 3 rows of 3 elements, found 2 of 3"),
            std::string::npos);
  EXPECT_NE(refusal([&] { expect("x", v, ElementType::f32, 2, 2); }).find("view_size"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              expect("x", v, ElementType::bf16, 2, 3);
            }).find("expected bfloat16, found float32"),
            std::string::npos);
}

}  // namespace
}  // namespace toto
