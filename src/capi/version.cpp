// SPDX-License-Identifier: Apache-2.0
#include "toto/toto.h"

const char* toto_version(void) { return TOTO_VERSION; }
uint32_t toto_version_number(void) { return TOTO_VERSION_NUMBER; }
