// SPDX-License-Identifier: Apache-2.0
// What a request says and nothing reads: a warning, or an error in our own forms.
#include "server/unread.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "server/app_fixture.h"
#include "server/options.h"

namespace toto::server {
namespace {

using testing::HasSubstr;

class UnreadTest : public AppTest {};

/// Every option of the description is read, and no answer that reads all has warnings.
TEST_F(UnreadTest, OptionsThatAreReadAreTheDescribedOnes) {
  const json document = json::parse(get("/openapi.json").body);
  std::vector<std::string> described;
  for (const auto& [name, unused] :
       document["components"]["schemas"]["Extensions"]["properties"].items()) {
    described.push_back(name);
  }
  EXPECT_THAT(described, testing::UnorderedElementsAreArray(kOptionNames));
  json body = forecast();
  body["options"].update({{"seed", 1},
                          {"mean_only", false},
                          {"return_samples", true},
                          {"context", 20},
                          {"quantiles_from", "auto"},
                          {"decode", "cached"},
                          {"align", "pad"},
                          {"paths", "coherent"},
                          {"tails", "clamp"},
                          {"views", "none"},
                          {"timeout_ms", 100'000},
                          {"priority", 1},
                          {"null_is_absent", nullptr}});
  const HttpResponse response = post(kForecast, body);
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_FALSE(json::parse(response.body).contains("warnings")) << response.body;
}

TEST_F(UnreadTest, WhatNothingReadsIsAWarningOfTheAnswer) {
  json body = {{"model", "small"},
               {"stream", false},
               {"inputs",
                {{{"target", {1, 2, 3, 4}}, {"past_covariate", json::object()}},
                 {{"target", {1, 2, 3, 4}}, {"past_covariate", json::object()}}}},
               {"parameters", {{"predicton_length", 4}}}};
  HttpResponse response = post("/v1/forecast", body);
  ASSERT_EQ(response.status, 200) << response.body;
  json answer = json::parse(response.body);
  EXPECT_EQ(answer["horizon"], 24);
  EXPECT_THAT(answer["warnings"].get<std::vector<std::string>>(),
              testing::UnorderedElementsAre(
                  "body: nothing here reads \"stream\" (see /openapi.json)",
                  "inputs[0]: nothing here reads \"past_covariate\" (did you mean "
                  "past_covariates? see /openapi.json)",
                  "parameters: nothing here reads \"predicton_length\" (did you mean "
                  "prediction_length? see /openapi.json)"));

  body = forecast();
  body["options"]["num_sample"] = 4;
  body["inputs"][0]["group"] = {1};
  body["inputs"][0]["covariates"] = {{"futur", json::object()}};
  response = post(kForecast, body);
  ASSERT_EQ(response.status, 200) << response.body;
  answer = json::parse(response.body);
  EXPECT_EQ(answer["warnings"].size(), 3U) << answer["warnings"];
  for (const char* near : {"mean num_samples?", "mean groups?", "mean future?"}) {
    EXPECT_THAT(answer["warnings"].dump(), HasSubstr(near));
  }

  body = {{"inputs",
           {{{"name", "target"}, {"datatype", "FP32"}, {"shape", {4}}, {"data", {1, 2, 3, 4}}}}},
          {"parameters",
           {{"horizont", 3}, {"timeout", 0}, {"priority", 1}, {"binary_data_output", false}}}};
  response = post("/v2/models/small/infer", body);
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(
      json::parse(response.body)["parameters"]["warnings"],
      "parameters: nothing here reads \"horizont\" (did you mean horizon? see /openapi.json)");
}

TEST_F(UnreadTest, WarningsAreFewWhateverIsSent) {
  json body = {{"model", "small"}, {"inputs", {{{"target", {1, 2, 3, 4}}}}}};
  for (int i = 0; i < 100; ++i)
    body["parameters"][std::string(100'000, 'x') + std::to_string(i)] = 1;
  HttpResponse response = post("/v1/forecast", body);
  ASSERT_EQ(response.status, 200);
  EXPECT_LT(json::parse(response.body)["warnings"].dump().size(), 4'000U);
  body["parameters"].clear();
  for (int i = 0; i < 100; ++i) body["parameters"][fmt::format("x{}", i)] = 1;
  response = post("/v1/forecast", body);
  EXPECT_EQ(json::parse(response.body)["warnings"].size(), Unread::kMaxWarnings);
}

TEST_F(UnreadTest, LiveSeriesRefuseWhatNothingReads) {
  const auto refused = [&](const HttpRequest& one, const std::string& near) {
    const HttpResponse response = ask(one);
    EXPECT_EQ(response.status, 400) << response.body;
    const json error = json::parse(response.body)["error"];
    EXPECT_EQ(error["code"], "unknown_option") << response.body;
    EXPECT_THAT(error["remedy"], HasSubstr("did you mean " + near + "?"));
  };
  const auto query = [](const std::string& path, const std::string& text) {
    HttpRequest one = request("GET", path);
    one.query = text;
    return one;
  };
  refused(request("PUT", "/v1/series/a", R"({"values": [1, 2], "frequncy": "H"})"), "frequency");
  EXPECT_EQ(get("/v1/series/a").status, 404);
  ask(request("PUT", "/v1/series/a", R"({"values": [1, 2, 3, 4]})"));
  refused(request("POST", "/v1/series/a/points", R"({"values": [5], "aat": null})"), "at");
  refused(query("/v1/series/a", "lst=1"), "last");
  refused(query("/v1/series/a/forecast", "horizn=1"), "horizon");
  refused(query("/v1/series/a/forecast", "sed=1"), "seed");
  refused(query("/v1/series/a/anomalies", "treshold=0.1"), "threshold");
  EXPECT_EQ(json::parse(get("/v1/series/a").body)["count"], 4);
  EXPECT_EQ(ask(query("/v1/series/a", "last=")).status, 400);
  EXPECT_EQ(ask(query("/v1/series/a/anomalies", "threshold=")).status, 400);
  EXPECT_EQ(
      ask(query("/v1/series/a/forecast", "horizon=1&model=small&quantiles=0.5&seed=1")).status,
      200);
  EXPECT_EQ(ask(query("/v1/series/a/anomalies", "model=small&threshold=0.1")).status, 200);
}

}  // namespace
}  // namespace toto::server
