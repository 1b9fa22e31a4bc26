// SPDX-License-Identifier: Apache-2.0
// Student's t against 50-digit values, closed forms and its own symmetries.
#include "core/student_t.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "support/paths.h"

namespace toto {
namespace {

constexpr double kPi = 3.14159265358979323846;

TEST(StudentT, AgreesWithTheTableToTwelveDigits) {
  std::ifstream file(test::data_path("student_t/table.csv"));
  ASSERT_TRUE(file);
  std::string line;
  std::getline(file, line);
  ASSERT_EQ(line, "df,t,pdf,upper");
  int rows = 0;
  double worst = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    double df = 0, t = 0, pdf = 0, upper = 0;
    char comma = 0;
    fields >> df >> comma >> t >> comma >> pdf >> comma >> upper;
    ASSERT_FALSE(fields.fail()) << line;
    ++rows;
    const double pdf_error = std::fabs(student_t_pdf(t, df) / pdf - 1);
    const double upper_error = std::fabs(student_t_upper(t, df) / upper - 1);
    EXPECT_LE(pdf_error, 1e-12) << line;
    EXPECT_LE(upper_error, 1e-12) << line << " got " << student_t_upper(t, df);
    EXPECT_LE(std::fabs(student_t_cdf(-t, df) / upper - 1), 1e-12) << line;
    EXPECT_NEAR(student_t_cdf(t, df), 1 - upper, 2e-15) << line;
    EXPECT_EQ(student_t_pdf(-t, df), student_t_pdf(t, df)) << line;
    worst = std::fmax(worst, std::fmax(pdf_error, upper_error));
  }
  EXPECT_EQ(rows, 345);
  RecordProperty("largest_relative_error", std::to_string(worst * 1e16) + "e-16");
}

TEST(StudentT, AgreesWithClosedForms) {
  for (int i = -135; i <= 135; ++i) {
    const double x = 0.37 * i;
    const double s = std::sqrt(2 + x * x);  // df = 2
    const double upper2 = x > 0 ? 1 / (s * (s + x)) : 0.5 * (1 - x / s);
    EXPECT_NEAR(student_t_upper(x, 2) / upper2, 1, 1e-14) << x;
    EXPECT_NEAR(student_t_pdf(x, 2) * s * s * s, 1, 1e-14) << x;
    const double theta = std::atan2(x, std::sqrt(3.0));  // df = 3
    EXPECT_NEAR(student_t_cdf(x, 3), 0.5 + (theta + std::sin(theta) * std::cos(theta)) / kPi, 1e-15)
        << x;
  }
}

// Beyond any df of the table the distribution is the normal to every digit.
TEST(StudentT, EndsInTheNormal) {
  for (const double df : {1e20, 1e30, 1e300, std::numeric_limits<double>::infinity()}) {
    for (const double x : {0.0, 1e-5, 0.3, 1.0, 3.0, 8.0, 30.0, 37.0}) {
      EXPECT_NEAR(student_t_upper(x, df) / (0.5 * std::erfc(x / std::sqrt(2.0))), 1, 5e-13)
          << df << " " << x;
      EXPECT_NEAR(student_t_pdf(x, df) / (std::exp(-x * x / 2) / std::sqrt(2 * kPi)), 1, 5e-13)
          << df << " " << x;
    }
  }
}

// Where one formula hands over to another, no step is seen.
TEST(StudentT, IsContinuousAcrossItsBranches) {
  const double below = std::nextafter(student_t::kLargeDf, 0);
  for (int i = 0; i < 3000; ++i) {
    const double x = 0.01 * i;
    EXPECT_NEAR(student_t_upper(x, below) / student_t_upper(x, student_t::kLargeDf), 1, 1e-13) << x;
  }
  for (const double df : {40.0, 64.0, 100.0, 1000.0}) {  // t^2 = 0.5625 df
    const double x = 0.75 * std::sqrt(df);
    EXPECT_NEAR(student_t_upper(x * (1 - 1e-15), df) / student_t_upper(x * (1 + 1e-15), df), 1,
                1e-12)
        << df;
  }
}

TEST(StudentT, FallsWithXAndStaysInRange) {
  for (const double df : {2.0, 2.0000002, 3.7, 12.0, 39.9, 40.0, 200.0, 1e8}) {
    double last = 1;
    for (int i = -3000; i <= 3000; ++i) {
      const double x = 0.013 * i;
      const double upper = student_t_upper(x, df);
      EXPECT_GE(upper, 0) << df << " " << x;
      EXPECT_LE(upper, last) << df << " " << x;
      last = upper;
    }
  }
}

TEST(StudentT, ExtremeArgumentsGiveLimits) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double df : {2.0, 5.0, 50.0, 1e30}) {
    EXPECT_DOUBLE_EQ(student_t_cdf(0, df), 0.5);
    EXPECT_EQ(student_t_cdf(inf, df), 1.0);
    EXPECT_EQ(student_t_cdf(-inf, df), 0.0);
    EXPECT_EQ(student_t_upper(1e200, df), 0.0);
    EXPECT_EQ(student_t_pdf(inf, df), 0.0);
    EXPECT_TRUE(std::isnan(student_t_cdf(std::nan(""), df)));
  }
  EXPECT_TRUE(std::isnan(student_t_cdf(1, std::nan(""))));
}

}  // namespace
}  // namespace toto
