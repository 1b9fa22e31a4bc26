// SPDX-License-Identifier: Apache-2.0
// Headers, compression, JSON text, errors.
#include <gtest/gtest.h>
#include <zstd.h>

#include <cmath>
#include <limits>

#include "server/access_log.h"
#include "server/compress.h"
#include "server/errors.h"
#include "server/json_field.h"
#include "server/json_text.h"
#include "server/trace_context.h"

namespace toto::server {
namespace {

TEST(Http, ReadsListsOfWords) {
  EXPECT_TRUE(lists("gzip", "gzip"));
  EXPECT_TRUE(lists("deflate, GZIP;q=0.5", "gzip"));
  EXPECT_FALSE(lists("gzip;q=0", "gzip"));
  EXPECT_FALSE(lists("gzip; q=0.000, br", "gzip"));
  EXPECT_FALSE(lists("gzipped", "gzip"));
  EXPECT_FALSE(lists("", "gzip"));
}

TEST(Http, DecodesPercentSigns) {
  std::string out;
  EXPECT_TRUE(percent_decode("a%2Fb%C3%a9", out));
  EXPECT_EQ(out, "a/b\xC3\xA9");
  for (const char* text : {"%", "%1", "a%zz", "%%%"})
    EXPECT_FALSE(percent_decode(text, out)) << text;
}

TEST(Http, TakesShortPrintableIds) {
  EXPECT_TRUE(good_request_id("a-b_1.2"));
  EXPECT_FALSE(good_request_id(""));
  EXPECT_FALSE(good_request_id("a b"));
  EXPECT_FALSE(good_request_id("a\r\nSet-Cookie: x"));
  EXPECT_FALSE(good_request_id(std::string(129, 'a')));
  EXPECT_NE(new_request_id(), new_request_id());
}

TEST(Trace, IsReadAsTheRecommendationSays) {
  const std::string trace = "0af7651916cd43dd8448eb211c80319c";
  const std::string span = "b7ad6b7169203331";
  const std::string good = "00-" + trace + "-" + span + "-01";
  const auto found = parse_traceparent(good);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->trace_id, trace);
  EXPECT_EQ(found->span_id, span);
  EXPECT_TRUE(parse_traceparent("cc" + good.substr(2) + "-what-comes-later"));
  EXPECT_FALSE(parse_traceparent(good + "-what-comes-later"));
  EXPECT_FALSE(parse_traceparent("cc" + good.substr(2) + ".what-comes-later"));
  EXPECT_FALSE(parse_traceparent("ff" + good.substr(2)));
  EXPECT_FALSE(parse_traceparent("00-" + std::string(32, '0') + "-" + span + "-01"));
  EXPECT_FALSE(parse_traceparent("00-" + trace + "-" + std::string(16, '0') + "-01"));
  EXPECT_FALSE(parse_traceparent("00-" + trace + "-B7AD6B7169203331-01"));
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(parse_traceparent(good.substr(0, i))) << i;
    std::string other = good;
    other[i] = 'x';
    EXPECT_FALSE(parse_traceparent(other)) << i;
  }
  HttpRequest request;
  request.headers = {{"traceparent", good}};
  EXPECT_NE(access_line(request, {}, 0, 0, true).find(span), std::string::npos);
  request.headers.front().value.back() = '"';
  EXPECT_EQ(access_line(request, {}, 0, 0, true).find("span_id"), std::string::npos);
}

std::string code_of(std::string_view body, std::string_view encoding, std::size_t limit) {
  try {
    (void)decode_body(body, encoding, limit);
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

TEST(Compress, IsBoundedWhateverComes) {
  const std::string text(100'000, 'x');
  const std::string packed = gzip(text);
  EXPECT_EQ(decode_body(packed, "gzip", text.size()), text);
  EXPECT_EQ(decode_body(packed + packed, "gzip", 2 * text.size()), text + text);
  EXPECT_EQ(code_of(packed, "gzip", text.size() - 1), "body_too_large");
  EXPECT_EQ(code_of(packed, "br", text.size()), "unsupported_encoding");
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_EQ(code_of(packed.substr(0, size), "gzip", text.size()), "invalid_encoding");
  }
  EXPECT_EQ(code_of(packed + "x", "gzip", text.size()), "invalid_encoding");

  std::string zstd(ZSTD_compressBound(text.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), text.data(), text.size(), 3));
  EXPECT_EQ(decode_body(zstd, "zstd", text.size()), text);
  EXPECT_EQ(decode_body(zstd + zstd, "zstd", 2 * text.size()), text + text);
  EXPECT_EQ(code_of(zstd, "zstd", text.size() - 1), "body_too_large");
  for (std::size_t size = 1; size < zstd.size(); ++size) {
    EXPECT_EQ(code_of(zstd.substr(0, size), "zstd", text.size()), "invalid_encoding");
  }
}

TEST(Compress, OnlyLargeAnswersForThoseWhoTakeIt) {
  HttpRequest request;
  HttpResponse response;
  response.body.assign(100'000, 'a');
  compress_if_taken(request, response);
  EXPECT_EQ(response.body.size(), 100'000U);
  request.headers = {{"accept-encoding", "gzip, deflate"}};
  compress_if_taken(request, response);
  EXPECT_EQ(decode_body(response.body, "gzip", 100'000), std::string(100'000, 'a'));
  HttpResponse small;
  small.body = "{}";
  compress_if_taken(request, small);
  EXPECT_EQ(small.body, "{}");
}

TEST(JsonText, WritesWhatJsonAllows) {
  JsonText out;
  out.open('{').key("a\"b\n").string("\xFF\xC3\xA9").key("n").number(0.1F);
  out.key("nan").number(std::nanf("")).key("inf").number(std::numeric_limits<double>::infinity());
  out.key("list").open('[').integer(-1).whole(2).boolean(true).null().close(']');
  out.key("empty").open('{').close('}').close('}');
  EXPECT_EQ(out.take(),
            "{\"a\\\"b\\n\":\"\xEF\xBF\xBD\xC3\xA9\",\"n\":0.1,\"nan\":null,\"inf\":null,"
            "\"list\":[-1,2,true,null],\"empty\":{}}");
}

TEST(JsonField, PathsAreOneLine) {
  const auto tree = nlohmann::json::parse(R"({"a": {"line\nbreak": 1, "word-2": [true]}})");
  const JsonField a = JsonField(tree, "").at("a");
  EXPECT_EQ(a.at("word-2")[0].path(), "a.word-2[0]");
  EXPECT_EQ(a.at("line\nbreak").path(), R"(a."line\nbreak")");
}

TEST(Errors, HaveTheRightStatus) {
  const auto status = [](ExitStatus exit, const char* code) {
    return http_status(Error(exit, code, "x"));
  };
  EXPECT_EQ(status(ExitStatus::usage, "invalid_request"), 400);
  EXPECT_EQ(status(ExitStatus::bad_data, "no_observations"), 400);
  EXPECT_EQ(status(ExitStatus::usage, "queue_full"), 429);
  EXPECT_EQ(status(ExitStatus::usage, "request_too_large"), 422);
  EXPECT_EQ(status(ExitStatus::usage, "deadline_exceeded"), 504);
  EXPECT_EQ(status(ExitStatus::interrupted, "cancelled"), 499);
  EXPECT_EQ(status(ExitStatus::internal, "out_of_memory"), 503);
  EXPECT_EQ(status(ExitStatus::internal, "internal"), 500);
}

TEST(Errors, SayWhenToComeAgain) {
  const HttpRequest request;
  const auto retry = [&request](const char* remedy) {
    const Error error(ExitStatus::usage, "queue_full", "full", {}, remedy);
    return error_response(error, Dialect::plain, request).headers.at(0).value;
  };
  EXPECT_EQ(retry("try again in 2.500 s"), "3");
  EXPECT_EQ(retry("try again later"), "1");
  EXPECT_EQ(retry("try again in 999999999 s"), "3600");
}

}  // namespace
}  // namespace toto::server
