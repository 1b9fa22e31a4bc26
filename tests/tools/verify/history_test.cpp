// SPDX-License-Identifier: Apache-2.0
// Records of forecasts that nobody vouches for: what does not fit is named, nothing is converted.
#include "tools/verify/history.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/test_files.h"

namespace toto::verify {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json record() {
  RecordedSeries s;
  s.id = "web";
  s.input = "0";
  s.variates = 1;
  s.horizon = 2;
  s.parameters.components = 1;
  s.parameters.df = s.parameters.loc = s.parameters.scale = s.parameters.probability = {1, 2};
  s.parameters.affine_loc = s.parameters.affine_scale = {1, 2};
  return json::parse(encode_history({"toto", "m", "h", {{"mode", "eager"}}, {s}}));
}

TEST(History, IsReadAsItWasWritten) {
  const test::TempFolder folder;
  const History h = read_history(folder.write("h.json", record().dump()));
  ASSERT_EQ(h.series.size(), 1U);
  EXPECT_EQ(h.series[0].horizon, 2U);
  EXPECT_EQ(h.series[0].parameters.df, (std::vector<double>{1, 2}));
}

// Converting a number beyond the range of an integer is undefined.
TEST(History, SizesAreWholeNumbers) {
  const test::TempFolder folder;
  for (const char* key : {"variates", "horizon", "components"}) {
    // The last two are the sizes themselves, or near them, but for what is not whole.
    for (const json& value : {json(1e308), json(-1e308), json(9e18), json(1ULL << 63), json(-1),
                              json("2"), json(2.5), json(1.5)}) {
      json changed = record();
      changed["series"][0][key] = value;
      const std::string path = folder.write("h.json", changed.dump());
      const Error error = test::error_of([&] { (void)read_history(path); });
      EXPECT_EQ(error.code(), "invalid_history") << key << " " << value;
      EXPECT_THAT(error.message(), HasSubstr(std::string(key) + " is not a whole number")) << value;
    }
  }
}

TEST(History, ListsHaveTheirLength) {
  const test::TempFolder folder;
  for (const char* key : {"df", "loc", "scale", "probability", "affine_loc", "affine_scale"}) {
    json changed = record();
    changed["series"][0][key].push_back(3);
    const std::string path = folder.write("h.json", changed.dump());
    EXPECT_THAT(test::error_of([&] { (void)read_history(path); }).message(), HasSubstr(key));
  }
}

}  // namespace
}  // namespace toto::verify
