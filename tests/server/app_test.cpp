// SPDX-License-Identifier: Apache-2.0
// Routes, statuses and forecasts, with a small model and no socket.
#include "server/app.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "server/app_fixture.h"
#include "server/compress.h"
#include "settings/words.h"
#include "support/test_files.h"

namespace toto::server {
namespace {

using testing::HasSubstr;

TEST_F(AppTest, ForecastsAreThoseOfTheLibrary) {
  const HttpResponse response = post(kForecast, forecast(3, 20));
  ASSERT_EQ(response.status, 200) << response.body;
  const json content = json::parse(response.body)["outputs"][0]["content"];
  Forecaster forecaster(test::make_model(test::spec_config()));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto wave = test::wave(i, 30);
    ForecastOptions options;
    options.horizon = 20;
    options.levels = {0.1, 0.9};
    options.num_samples = 8;
    const Series view = wave.view();
    const Forecast expected = forecaster.forecast({&view, 1}, options).front();
    EXPECT_EQ(content[i]["mean_forecast"].get<std::vector<float>>(), expected.mean);
    auto both = content[i]["quantiles"]["0.1"].get<std::vector<float>>();
    const auto upper = content[i]["quantiles"]["0.9"].get<std::vector<float>>();
    both.insert(both.end(), upper.begin(), upper.end());
    EXPECT_EQ(both, expected.quantiles);
  }
}

TEST_F(AppTest, TailsAreAnOption) {
  const Model model = Model::load({.model = test::golden("toto2-tiny-uni")});
  models_.put(std::make_shared<ServedModel>(
      ServedModel{"two", model.info(), model.loaded(), Service(model), model}));
  Forecaster forecaster(model);
  const auto wave = test::wave(0, 30);
  const Series view = wave.view();
  for (const Tails tails : {Tails::clamp, Tails::exponential, Tails::normal}) {
    json body = forecast(1, 20);
    body["model"] = "two";
    body["options"]["quantiles"] = {0.01, 0.5};
    body["options"]["tails"] = word_of(kTails, tails);
    const HttpResponse response = post(kForecast, body);
    ASSERT_EQ(response.status, 200) << response.body;
    ForecastOptions options;
    options.horizon = 20;
    options.levels = {0.01, 0.5};
    options.tails = tails;
    const Forecast expected = forecaster.forecast({&view, 1}, options).front();
    const json content = json::parse(response.body)["outputs"][0]["content"][0];
    EXPECT_EQ(content["mean_forecast"].get<std::vector<float>>(), expected.mean);
    EXPECT_EQ(content["quantiles"]["0.01"].get<std::vector<float>>(),
              std::vector(expected.quantiles.begin(), expected.quantiles.begin() + 20));
  }
  json body = forecast();
  body["options"]["tails"] = "fat";
  EXPECT_EQ(post(kForecast, body).status, 400);
}

TEST_F(AppTest, PathsAreAnOption) {
  json body = forecast(1, 20);
  body["options"]["return_samples"] = true;
  const auto samples = [&](const char* paths) {
    body["options"]["paths"] = paths;
    const HttpResponse response = post(kForecast, body);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body)["outputs"][0]["content"][0]["samples"];
  };
  EXPECT_EQ(samples("auto"), samples("independent"));  // the model names none
  EXPECT_NE(samples("auto"), samples("coherent"));
  const Model ships = Model::load({.model = test::source_path("models/toto-nano-2")});
  models_.put(std::make_shared<ServedModel>(
      ServedModel{"ships", ships.info(), ships.loaded(), Service(ships), ships}));
  body["model"] = "ships";
  EXPECT_EQ(samples("auto"), samples("coherent"));
  EXPECT_NE(samples("auto"), samples("independent"));
  body["model"] = "small";
  body["options"]["paths"] = "joint";
  EXPECT_EQ(post(kForecast, body).status, 400);
}

TEST_F(AppTest, ViewsAreAnOption) {
  const auto wave = test::wave(0, 30);
  std::vector<float> daily(70);
  for (std::size_t t = 0; t < 70; ++t) daily[t] = wave.values[t % 7];
  json body = forecast(1, 20);
  body["inputs"][0]["series"] = daily;
  const std::string pattern =
      json::parse(get("/openapi.json").body)["components"]["schemas"]["Extensions"]["properties"]
                                            ["views"]["pattern"];
  Series view = wave.view();
  view.values = daily;
  view.steps = daily.size();
  for (const char* words : {"season", "flip,season,context/2"}) {
    EXPECT_TRUE(std::regex_match(words, std::regex(pattern))) << words;
    body["options"]["views"] = words;
    const HttpResponse response = post(kForecast, body);
    ASSERT_EQ(response.status, 200) << response.body;
    ForecastOptions options;
    options.horizon = 20;
    options.levels = {0.1, 0.9};
    options.num_samples = 8;
    options.views = parse_views(words);
    Forecaster forecaster(test::make_model(test::spec_config()));
    const Forecast expected = forecaster.forecast({&view, 1}, options).front();
    EXPECT_EQ(expected.applied.views_left_out, "");
    const json content = json::parse(response.body)["outputs"][0]["content"][0];
    EXPECT_EQ(content["mean_forecast"].get<std::vector<float>>(), expected.mean);
  }
  body["options"]["views"] = "seasons";
  EXPECT_EQ(post(kForecast, body).status, 400);
}

TEST_F(AppTest, FillsInWhatIsMissingAsTheReaderDoes) {
  json body = forecast();
  json& series = body["inputs"][0]["series"];
  series[0] = nullptr;
  series[10] = nullptr;
  const HttpResponse holes = post(kForecast, body);
  ASSERT_EQ(holes.status, 200) << holes.body;
  // The same as a series with a mask in the library.
  test::OwnedSeries wave = test::wave(0, 30);
  wave.mask.assign(30, 1);
  wave.mask[0] = wave.mask[10] = 0;
  wave.values[0] = wave.values[1];
  wave.values[10] = wave.values[9];
  ForecastOptions options;
  options.horizon = 6;
  options.levels = {0.1, 0.9};
  options.num_samples = 8;
  Forecaster forecaster(test::make_model(test::spec_config()));
  const Series view = wave.view();
  const Forecast expected = forecaster.forecast({&view, 1}, options).front();
  const json content = json::parse(holes.body)["outputs"][0]["content"][0];
  EXPECT_EQ(content["mean_forecast"].get<std::vector<float>>(), expected.mean);
}

TEST_F(AppTest, TheFirstErrorIsTheAnswer) {
  json body = forecast(3);
  body["inputs"][1]["series"] = {nullptr, nullptr};
  const HttpResponse response = post(kForecast, body);
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(json::parse(response.body)["error"]["code"], "no_observations");
  EXPECT_THAT(response.body, HasSubstr("wave-1"));
}

TEST_F(AppTest, LooksAtTheContextAlone) {
  options_.limits.context = 16;
  json body = forecast();
  body["inputs"][0]["start_timestamp"] = "2026-01-01";
  const json all = json::parse(post(kForecast, body).body)["outputs"][0]["content"][0];
  EXPECT_EQ(all["context_steps"], 16);
  EXPECT_EQ(all["start_timestamp"], "2026-01-31");
  json& series = body["inputs"][0]["series"];
  series.erase(series.begin(), series.begin() + 14);
  const json last = json::parse(post(kForecast, body).body)["outputs"][0]["content"][0];
  EXPECT_EQ(all["mean_forecast"], last["mean_forecast"]);
}

TEST_F(AppTest, ErrorsSpeakTheDialectOfTheirPath) {
  EXPECT_EQ(json::parse(get("/none").body)["error"]["code"], "not_found");
  EXPECT_EQ(json::parse(get("/v1/none").body)["code"], "not_found");
  EXPECT_TRUE(json::parse(get("/v2/none").body)["error"].is_string());
  EXPECT_EQ(json::parse(get("/v1/timeseries/none").body)["error"]["type"], "not_found_error");
  EXPECT_EQ(ask(request("HEAD", "/health")).status, 200);
  const HttpResponse wrong = ask(request("PATCH", "/v1/forecast"));
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at(0).value, "POST");
  EXPECT_EQ(get("/v2/models/a%zz").status, 404);
  EXPECT_EQ(get("/v2/models/a%2Fb").status, 404);
}

TEST_F(AppTest, ModelsAreFoundByTheirNames) {
  add("owner/other", 3);
  EXPECT_EQ(get("/v2/models/owner%2Fother").status, 200);
  EXPECT_EQ(get("/v1/models/owner/other").status, 200);
  json body = forecast();
  const std::string first = post(kForecast, body).body;
  body["model"] = "owner/other";
  const std::string second = post(kForecast, body).body;
  EXPECT_NE(json::parse(first)["outputs"], json::parse(second)["outputs"]);
  body["model"] = "third";
  EXPECT_EQ(post(kForecast, body).status, 404);
}

TEST_F(AppTest, AReplacedModelEndsWhatItBegan) {
  const auto old = models_.find("small");
  const auto exchange =
      std::make_shared<FakeExchange>(request("POST", kForecast, forecast(1, 60).dump()));
  app().handle(exchange);
  add("small", 9);
  EXPECT_FALSE(models_.sweep());  // `old` is held here
  EXPECT_EQ(exchange->wait().status, 200);
  EXPECT_NE(models_.find("small"), old);
}

TEST_F(AppTest, AClientThatGoesCancelsItsSeries) {
  const auto exchange = begin_long(4);
  exchange->go();
  const HttpResponse response = exchange->wait();
  EXPECT_EQ(response.status, 499);
  EXPECT_EQ(models_.find("small")->service.counters().cancelled, 4U);
}

TEST_F(AppTest, ADeadlineIsToldAtOnce) {
  const auto exchange = begin_long(2);
  exchange->expire();
  EXPECT_EQ(exchange->wait().status, 504);
}

TEST_F(AppTest, AServiceThatEndsSaysDraining) {
  options_.limits.max_horizon = 100'000;
  json body = forecast(1, 20'000);
  body["options"]["num_samples"] = 500;
  const auto exchange = std::make_shared<FakeExchange>(request("POST", kForecast, body.dump()));
  app().handle(exchange);
  models_.close();
  EXPECT_EQ(exchange->wait().status, 503);
  EXPECT_EQ(post(kForecast, forecast()).status, 503);
}

TEST_F(AppTest, LinesThatAreWrongAtOnceAreAllAnswered) {
  HttpRequest one = request("POST", kForecast);
  one.headers = {{"content-type", "application/x-ndjson"}};
  json body = forecast();
  body["model"] = "none";
  for (const std::size_t count : {std::size_t{100}, std::size_t{3}}) {
    one.body.clear();
    if (count == 3) body["padding"] = std::string(std::size_t{1} << 20, 'x');  // fills the room
    for (std::size_t i = 0; i < count; ++i) one.body += body.dump() + "\n";
    const auto exchange = std::make_shared<FakeExchange>(one);
    app().handle(exchange);
    const HttpResponse response = exchange->wait();
    std::string all;
    bool given = true, last = false;
    while (given && !last) {
      given = false;
      response.source->next([&](const std::string& piece, bool end) {
        given = true;
        last = end;
        all += piece;
      });
    }
    EXPECT_TRUE(last);
    EXPECT_EQ(std::ranges::count(all, '\n'), count);
    EXPECT_THAT(all, HasSubstr("unknown_model"));
  }
}

TEST_F(AppTest, ATableIsLimitedOnceItIsUnpacked) {
  options_.max_body_bytes = std::size_t{1} << 20;
  std::string table = "ds,y\n";
  for (int i = 0; i < 100; ++i) table += fmt::format("{},{}\n", 1900 + i, i % 7);
  EXPECT_EQ(ask(request("POST", "/ui/forecast", gzip(table))).status, 200);
  while (table.size() <= options_.max_body_bytes) table += std::string(1000, '\n');
  for (const char* path : {"/ui/forecast", "/ui/anomalies"}) {
    const HttpResponse response = ask(request("POST", path, gzip(table)));
    EXPECT_EQ(response.status, 413) << response.body;
    EXPECT_THAT(response.body, HasSubstr("file_too_large"));
  }
}

TEST_F(AppTest, ThePageShowsNoBandThatTheModelDoesNotKnow) {
  std::string table = "ds,y\n";
  for (int i = 0; i < 100; ++i) table += fmt::format("{},{}\n", 1900 + i, i % 7);
  const json wide = json::parse(ask(request("POST", "/ui/forecast", table)).body);
  EXPECT_THAT(wide["svg"].get<std::string>(), HasSubstr("95 % interval"));
  EXPECT_THAT(wide["csv"].get<std::string>(), HasSubstr("q0.975"));
  const Model model = Model::load({.model = test::golden("toto2-tiny-uni")});
  models_.put(std::make_shared<ServedModel>(
      ServedModel{"two", model.info(), model.loaded(), Service(model), model}));
  HttpRequest two = request("POST", "/ui/forecast", table);
  two.query = "model=two";
  const HttpResponse response = ask(two);
  ASSERT_EQ(response.status, 200) << response.body;
  const json deciles = json::parse(response.body);
  EXPECT_EQ(deciles["model"], "two");
  EXPECT_THAT(deciles["svg"].get<std::string>(), HasSubstr("80 % interval"));
  EXPECT_THAT(deciles["svg"].get<std::string>(), Not(HasSubstr("95 % interval")));
  EXPECT_THAT(deciles["csv"].get<std::string>(), Not(HasSubstr("q0.975")));
}

TEST_F(AppTest, AnAnswerTooLargeIsRefusedBeforeItIsComputed) {
  json body = forecast(7, 10'000);
  body["options"]["num_samples"] = 1000;
  body["options"]["return_samples"] = true;
  const HttpResponse response = post(kForecast, body);
  EXPECT_EQ(response.status, 422) << response.body;
  EXPECT_THAT(response.body, HasSubstr("answer_too_large"));
  HttpRequest one = request("POST", kForecast, body.dump());
  one.headers = {{"accept", "text/event-stream"}};
  EXPECT_EQ(ask(one).status, 422);
}

TEST_F(AppTest, DecompressedBodiesNeedRoom) {
  HttpRequest one = request("POST", kForecast, gzip(forecast().dump()));
  one.headers = {{"content-encoding", "gzip"}};
  EXPECT_EQ(ask(one).status, 200);
  const auto exchange = std::make_shared<FakeExchange>(one);
  exchange->room = forecast().dump().size() - 1;
  app().handle(exchange);
  const HttpResponse response = exchange->wait();
  EXPECT_EQ(response.status, 429);
  EXPECT_THAT(response.body, HasSubstr("memory_full"));
}

TEST_F(AppTest, SearchesThatAreDroppedAreAnswered) {
  std::vector<std::shared_ptr<FakeExchange>> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(std::make_shared<FakeExchange>(request("POST", "/ui/anomalies")));
    app().handle(all.back());
  }
  for (int i = 0; i < 3; ++i) all[i]->go();
  app().stop();
  for (const auto& exchange : all) ASSERT_EQ(exchange->answers(), 1);
  EXPECT_EQ(all[2]->wait().status, 499);
  EXPECT_EQ(all[5]->wait().status, 503);
}

TEST_F(AppTest, ACovariateKnownAheadCountsOnce) {
  options_.limits.max_variates = 3;
  json body = {{"model", "small"},
               {"inputs",
                {{{"item_id", "a"},
                  {"target", {1, 2, 3, 4}},
                  {"past_covariates", {{"a", {1, 2, 3, 4}}, {"b", {1, 2, 3, 4}}}},
                  {"future_covariates", {{"a", {5, 6}}, {"b", {5, 6}}}}}}},
               {"parameters", {{"prediction_length", 2}}}};
  EXPECT_EQ(post("/v1/forecast", body).status, 200) << post("/v1/forecast", body).body;
  body["inputs"][0]["past_covariates"]["c"] = {1, 2, 3, 4};
  EXPECT_EQ(post("/v1/forecast", body).status, 422);
}

TEST_F(AppTest, AFullQueueIs429WithATime) {
  ServiceOptions few;
  few.max_queue = 2;
  add("few", 0, few);
  json body = forecast(64, 60);
  body["model"] = "few";
  const HttpResponse response = post(kForecast, body);
  ASSERT_EQ(response.status, 429) << response.body;
  EXPECT_THAT(response.body, HasSubstr("queue_full"));
  bool told = false;
  for (const HttpHeader& header : response.headers) told = told || header.name == "retry-after";
  EXPECT_TRUE(told);
}

TEST_F(AppTest, KeysOpenEverythingButHealth) {
  options_.api_keys = {"alpha", "beta"};
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/v1/models").status, 401);
  HttpRequest one = request("GET", "/v1/models");
  one.headers = {{"authorization", "Bearer beta"}};
  EXPECT_EQ(ask(one).status, 200);
  one.headers = {{"x-api-key", "betabeta"}};
  EXPECT_EQ(ask(one).status, 401);
  one.headers = {{"x-api-key", ""}};
  EXPECT_EQ(ask(one).status, 401);
}

TEST_F(AppTest, DrainingIsNotReady) {
  app().set_draining();
  EXPECT_EQ(get("/health").status, 503);
  EXPECT_EQ(get("/v2/health/ready").status, 503);
  EXPECT_EQ(get("/v2/models/small/ready").status, 503);
  EXPECT_EQ(get("/v2/health/live").status, 200);
  EXPECT_EQ(post(kForecast, forecast()).status, 200);
}

TEST_F(AppTest, CountsAndLogsWhatItAnswers) {
  std::string lines;
  options_.log = [&lines](std::string_view line) { lines += line; };
  HttpRequest one = request("POST", kForecast, forecast(2).dump());
  one.headers = {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}};
  const HttpResponse response = ask(one);
  app().done(one, response, 123, true);
  const json line = json::parse(lines);
  EXPECT_EQ(line["trace_id"], "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(line["series"], 2);
  EXPECT_EQ(line["bytes_out"], 123);
  const std::string text = get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("route=\"/v1/timeseries/forecast\",status=\"200\"} 1"));
  EXPECT_THAT(text, HasSubstr("toto_series_total{model=\"small\",result=\"completed\"} 2"));
}

TEST_F(AppTest, LiveSeriesAreForecastAsRequestsAre) {
  EXPECT_EQ(ask(request("PUT", "/v1/series/a", R"({"values": [1, 2, null, 3]})")).status, 201);
  const HttpResponse grown =
      ask(request("POST", "/v1/series/a/points", R"({"values": [4, 5], "at": 4})"));
  EXPECT_EQ(json::parse(grown.body)["count"], 6);
  EXPECT_EQ(ask(request("POST", "/v1/series/a/points", R"({"values": [4], "at": 4})")).status, 409);
  HttpRequest asked = request("GET", "/v1/series/a/forecast");
  asked.query = "horizon=3&quantiles=0.25&num_samples=8&seed=5";
  const json sent = {
      {"model", "small"},
      {"inputs", {{{"item_id", "a"}, {"target", {1, 2, nullptr, 3, 4, 5}}}}},
      {"parameters",
       {{"prediction_length", 3}, {"quantile_levels", {0.25}}, {"num_samples", 8}, {"seed", 5}}}};
  EXPECT_EQ(json::parse(ask(asked).body)["outputs"],
            json::parse(post("/v1/forecast", sent).body)["outputs"]);
  EXPECT_EQ(ask(request("DELETE", "/v1/series/a")).status, 204);
  EXPECT_EQ(get("/v1/series/a").status, 404);
}

TEST_F(AppTest, ItsDescriptionNamesEveryRoute) {
  const json document = json::parse(get("/openapi.json").body);
  for (const auto& [path, operations] : document["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      std::string concrete = path;
      if (const auto at = concrete.find("{name}"); at != std::string::npos) {
        concrete.replace(at, 6, "small");
      }
      if (const auto at = concrete.find("{id}"); at != std::string::npos) {
        concrete.replace(at, 4, "live");
        ask(request("PUT", "/v1/series/live", R"({"values": [1, 2, 3]})"));
      }
      std::string verb = method;
      for (char& c : verb) c = static_cast<char>(std::toupper(c));
      const HttpResponse response = ask(request(verb, concrete, "{}"));
      EXPECT_NE(response.status, 404) << path;
      EXPECT_NE(response.status, 405) << path;
    }
  }
}

}  // namespace
}  // namespace toto::server
