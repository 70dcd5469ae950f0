/* SPDX-License-Identifier: Apache-2.0 */
/* Media types by the end of a file's name. */
#pragma once

/* "report.PDF" -> "application/pdf"; what is not known is "application/octet-stream". Static. */
const char *mime_type(const char *name);
