// SPDX-License-Identifier: Apache-2.0
// capi_test NAME: one test of the C interface. CAPI_TEST_DATA is the folder of the golden cases.
#include <math.h>
#include <stdlib.h>

#include "check.h"

int failures = 0;

void check_failure(toto_status got, toto_status status, const char* code, const char* where,
                   toto_error* caught, const char* call, int line) {
  const int right = got == status && caught != NULL && toto_error_status(caught) == status &&
                    strcmp(toto_error_code(caught), code) == 0 &&
                    strcmp(toto_error_where(caught), where) == 0 &&
                    toto_error_message(caught)[0] != '\0';
  if (!right) {
    ++failures;
    fprintf(stderr, "line %d: %s\n  expected %d [%s] at '%s'\n  found    %d [%s] at '%s': %s\n",
            line, call, (int)status, code, where, (int)got, toto_error_code(caught),
            toto_error_where(caught), toto_error_message(caught));
  }
  toto_error_free(caught);
}

void check_success(toto_status got, toto_error* caught, const char* call, int line) {
  if (got != TOTO_OK || caught != NULL) {
    ++failures;
    fprintf(stderr, "line %d: %s\n  failed: %d [%s] %s\n", line, call, (int)got,
            toto_error_code(caught), toto_error_message(caught));
  }
  toto_error_free(caught);
}

toto_model* tiny_model(void) {
  toto_error* caught = NULL;
  toto_model* model = NULL;
  toto_model_options options = TOTO_MODEL_OPTIONS_INIT;
  char folder[4096];
  const char* data = getenv("CAPI_TEST_DATA");
  snprintf(folder, sizeof folder, "%s/toto1-tiny-a", data == NULL ? "." : data);
  options.model = folder;
  options.threads = 1;
  CHECK_OK(toto_model_load(&options, &model, &caught));
  return model;
}

toto_forecaster* tiny_forecaster(void) {
  toto_error* caught = NULL;
  toto_forecaster* forecaster = NULL;
  toto_model* model = tiny_model();
  CHECK_OK(toto_forecaster_new(model, NULL, &forecaster, &caught));
  toto_model_free(model);
  return forecaster;
}

const float* wave(int phase) {
  static float values[8][kSteps];
  const int row = phase % 8;
  for (int t = 0; t < kSteps; ++t) {
    values[row][t] = 10.0F + (float)phase + 3.0F * sinf(0.4F * (float)(t + row));
  }
  return values[row];
}

toto_series wave_series(const char* id, int phase) {
  toto_series series = TOTO_SERIES_INIT;
  series.id = id;
  series.variates = 1;
  series.steps = kSteps;
  series.values = wave(phase);
  return series;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } tests[] = {
      {"version", test_version},
      {"null_arguments", test_null_arguments},
      {"null_handles", test_null_handles},
      {"model", test_model},
      {"shipped_model", test_shipped_model},
      {"devices", test_devices},
      {"rollback", test_rollback},
      {"variables_of_pytorch", test_variables_of_pytorch},
      {"model_errors", test_model_errors},
      {"forecaster_errors", test_forecaster_errors},
      {"request_errors", test_request_errors},
      {"series_errors", test_series_errors},
      {"struct_sizes", test_struct_sizes},
      {"results", test_results},
      {"result_reuse", test_result_reuse},
      {"mean_only", test_mean_only},
      {"defaults", test_defaults},
      {"parameters", test_parameters},
      {"masks_groups_covariates", test_masks_groups_covariates},
      {"cancel", test_cancel},
      {"messages", test_messages},
      {"warm_up", test_warm_up},
      {"lifetimes", test_lifetimes},
      {"threads", test_threads},
      {"one_forecaster_many_threads", test_one_forecaster_many_threads},
  };
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
    if (argc != 2 || strcmp(argv[1], tests[i].name) != 0) continue;
    tests[i].run();
    if (failures > 0) fprintf(stderr, "%d checks failed\n", failures);
    return failures == 0 ? 0 : 1;
  }
  fprintf(stderr, "usage: capi_test NAME\n");
  return 2;
}
