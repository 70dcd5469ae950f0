/* SPDX-License-Identifier: Apache-2.0 */
/* Media types by the extension of a file's name. */
#pragma once

/* Returns "application/pdf" for "report.PDF", for example, and "application/octet-stream" for an
 * unknown extension. The text is static. */
const char *mime_type(const char *name);
