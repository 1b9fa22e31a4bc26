// SPDX-License-Identifier: Apache-2.0
// Variables in a program that embeds the library by C.
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { kLines = 4096 };

static void append(void* user, const char* line) {
  char* lines = user;
  const size_t used = strlen(lines);
  snprintf(lines + used, kLines - used, "%s\n", line);
}

/// Loads the model with `options`, and puts what it writes to standard error into `written`.
static void load_and_keep(toto_model_options* options, char* written) {
  toto_error* caught = NULL;
  toto_model* model = NULL;
  char folder[4096];
  FILE* file = tmpfile();
  const int standard_error = dup(STDERR_FILENO);
  const char* data = getenv("CAPI_TEST_DATA");
  snprintf(folder, sizeof folder, "%s/toto1-tiny-a", data == NULL ? "." : data);
  options->model = folder;
  options->threads = 1;
  dup2(fileno(file), STDERR_FILENO);
  CHECK_OK(toto_model_load(options, &model, &caught));
  fflush(stderr);
  dup2(standard_error, STDERR_FILENO);
  close(standard_error);
  rewind(file);
  written[fread(written, 1, kLines - 1, file)] = '\0';
  fclose(file);
  toto_model_free(model);
}

void test_rollback(void) {
  char written[kLines];
  toto_model_options options = TOTO_MODEL_OPTIONS_INIT;
  load_and_keep(&options, written);
  CHECK(written[0] == '\0');

  setenv("TOTO_LOG", "device", 1);
  load_and_keep(&options, written);
  CHECK(strstr(written, "model loaded") != NULL && strstr(written, "reduce-overhead") != NULL);
  setenv("TOTO_DISABLE_COMPILE", "1", 1);
  options.mode = "max-autotune";
  load_and_keep(&options, written);
  CHECK(strstr(written, ", eager, ") != NULL && strstr(written, "max-autotune") == NULL);
  unsetenv("TOTO_DISABLE_COMPILE");
  load_and_keep(&options, written);
  CHECK(strstr(written, ", max-autotune, ") != NULL);
  unsetenv("TOTO_LOG");
}

void test_variables_of_pytorch(void) {
  char written[kLines], told[kLines] = "";
  toto_model_options options = TOTO_MODEL_OPTIONS_INIT;
  options.warning = append;
  options.user = told;
  setenv("TOTO_COMPILE_BACKEND", "inductor", 1);
  setenv("TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", "1", 1);
  setenv("TOTO_COMPIL_MODE", "eager", 1);
  load_and_keep(&options, written);
  unsetenv("TOTO_COMPILE_BACKEND");
  unsetenv("TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS");
  unsetenv("TOTO_COMPIL_MODE");
  CHECK(written[0] == '\0');
  CHECK(strstr(told, "TOTO_COMPILE_BACKEND=inductor is a backend of torch.compile") != NULL);
  CHECK(strstr(told, "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS has no effect") != NULL);
  CHECK(strstr(told, "TOTO_COMPIL_MODE is set, but this version does not read it") != NULL);
}
