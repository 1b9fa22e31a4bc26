// SPDX-License-Identifier: Apache-2.0
// What the tests of the C interface share. C99.
#ifndef TOTO_TESTS_CAPI_CHECK_H
#define TOTO_TESTS_CAPI_CHECK_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "toto/toto.h"

extern int failures;

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      ++failures;                                                               \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                           \
  } while (0)

/// A call with `error` set to &caught: that it failed with this status, code and place.
#define CHECK_FAILS(call, status, code, where)                               \
  do {                                                                       \
    const toto_status got_ = (call);                                         \
    check_failure(got_, (status), (code), (where), caught, #call, __LINE__); \
    caught = NULL;                                                           \
  } while (0)
#define CHECK_OK(call)                            \
  do {                                            \
    const toto_status got_ = (call);              \
    check_success(got_, caught, #call, __LINE__); \
    caught = NULL;                                \
  } while (0)

void check_failure(toto_status got, toto_status status, const char* code, const char* where,
                   toto_error* caught, const char* call, int line);
void check_success(toto_status got, toto_error* caught, const char* call, int line);

enum { kSteps = 64, kTinyPatch = 8 };

/// toto1-tiny-a of the golden cases: patches of 8 steps, three components. Loaded on one thread.
toto_model* tiny_model(void);
toto_forecaster* tiny_forecaster(void);
/// 64 steps of a wave, another one for each `phase`.
const float* wave(int phase);
toto_series wave_series(const char* id, int phase);

// The tests, one program argument each.
void test_version(void);
void test_null_arguments(void);
void test_null_handles(void);
void test_model(void);
void test_shipped_model(void);
void test_devices(void);
void test_rollback(void);
void test_variables_of_pytorch(void);
void test_model_errors(void);
void test_forecaster_errors(void);
void test_request_errors(void);
void test_series_errors(void);
void test_struct_sizes(void);
void test_results(void);
void test_result_reuse(void);
void test_mean_only(void);
void test_defaults(void);
void test_parameters(void);
void test_masks_groups_covariates(void);
void test_cancel(void);
void test_messages(void);
void test_warm_up(void);
void test_lifetimes(void);
void test_threads(void);
void test_one_forecaster_many_threads(void);

#endif
