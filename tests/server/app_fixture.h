// SPDX-License-Identifier: Apache-2.0
// The routes with a small model and no socket.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "server/app.h"
#include "server/fake_exchange.h"
#include "support/small_model.h"

namespace toto::server {

using nlohmann::json;

class AppTest : public testing::Test {
 protected:
  AppTest() { add("small", 0); }

  void add(const std::string& name, std::uint64_t seed, const ServiceOptions& options = {}) {
    const Model model = test::make_model(test::spec_config(), false, {}, seed);
    models_.put(std::make_shared<ServedModel>(
        ServedModel{name, model.info(), model.loaded(), Service(model, options), model}));
  }
  App& app() {
    if (!app_) app_.emplace(options_, models_, metrics_);
    return *app_;
  }
  static HttpRequest request(const std::string& method, const std::string& path,
                             const std::string& body = {}) {
    HttpRequest one;
    one.method = method;
    one.path = path;
    one.body = body;
    one.id = "id";
    return one;
  }
  HttpResponse ask(const HttpRequest& one) {
    const auto exchange = std::make_shared<FakeExchange>(one);
    app().handle(exchange);
    HttpResponse response = exchange->wait();
    EXPECT_EQ(exchange->answers(), 1);
    return response;
  }
  /// Begins forecasts that take long.
  std::shared_ptr<FakeExchange> begin_long(std::size_t series) {
    options_.limits.max_horizon = 100'000;
    json body = forecast(series, 20'000);
    body["options"]["num_samples"] = 500;
    const auto exchange = std::make_shared<FakeExchange>(request("POST", kForecast, body.dump()));
    app().handle(exchange);
    return exchange;
  }
  HttpResponse get(const std::string& path) { return ask(request("GET", path)); }
  HttpResponse post(const std::string& path, const json& body) {
    return ask(request("POST", path, body.dump()));
  }
  static json forecast(std::size_t series = 1, std::size_t horizon = 6) {
    json body = {
        {"model", "small"},
        {"options", {{"horizon", horizon}, {"quantiles", {0.9, 0.1}}, {"num_samples", 8}}}};
    for (std::size_t i = 0; i < series; ++i) {
      const auto wave = test::wave(i, 30);
      body["inputs"].push_back({{"type", "univariate_time_series"},
                                {"name", wave.id},
                                {"frequency", "D"},
                                {"series", wave.values}});
    }
    return body;
  }
  static constexpr const char* kForecast = "/v1/timeseries/forecast";

  AppOptions options_;
  Models models_;
  Metrics metrics_{models_};
  std::optional<App> app_;
};

}  // namespace toto::server
