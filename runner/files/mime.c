/* SPDX-License-Identifier: Apache-2.0 */
#include "files/mime.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

static const struct {
        const char *extension;
        const char *type;
} types[] = {
        { "7z", "application/x-7z-compressed" },
        { "aac", "audio/aac" },
        { "avi", "video/x-msvideo" },
        { "avif", "image/avif" },
        { "bmp", "image/bmp" },
        { "bz2", "application/x-bzip2" },
        { "c", "text/x-c" },
        { "cpp", "text/x-c++" },
        { "css", "text/css" },
        { "csv", "text/csv" },
        { "doc", "application/msword" },
        { "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
        { "eml", "message/rfc822" },
        { "epub", "application/epub+zip" },
        { "flac", "audio/flac" },
        { "gif", "image/gif" },
        { "go", "text/x-go" },
        { "gz", "application/gzip" },
        { "h", "text/x-c" },
        { "heic", "image/heic" },
        { "htm", "text/html" },
        { "html", "text/html" },
        { "ico", "image/vnd.microsoft.icon" },
        { "ics", "text/calendar" },
        { "ipynb", "application/x-ipynb+json" },
        { "java", "text/x-java" },
        { "jpeg", "image/jpeg" },
        { "jpg", "image/jpeg" },
        { "js", "text/javascript" },
        { "json", "application/json" },
        { "jsonl", "application/jsonl" },
        { "log", "text/plain" },
        { "m4a", "audio/mp4" },
        { "md", "text/markdown" },
        { "mjs", "text/javascript" },
        { "mkv", "video/x-matroska" },
        { "mov", "video/quicktime" },
        { "mp3", "audio/mpeg" },
        { "mp4", "video/mp4" },
        { "mpeg", "video/mpeg" },
        { "odp", "application/vnd.oasis.opendocument.presentation" },
        { "ods", "application/vnd.oasis.opendocument.spreadsheet" },
        { "odt", "application/vnd.oasis.opendocument.text" },
        { "ogg", "audio/ogg" },
        { "otf", "font/otf" },
        { "parquet", "application/vnd.apache.parquet" },
        { "pdf", "application/pdf" },
        { "png", "image/png" },
        { "ppt", "application/vnd.ms-powerpoint" },
        { "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
        { "py", "text/x-python" },
        { "rs", "text/x-rust" },
        { "rtf", "application/rtf" },
        { "sh", "application/x-sh" },
        { "sql", "application/sql" },
        { "sqlite", "application/vnd.sqlite3" },
        { "svg", "image/svg+xml" },
        { "tar", "application/x-tar" },
        { "tgz", "application/gzip" },
        { "tif", "image/tiff" },
        { "tiff", "image/tiff" },
        { "toml", "application/toml" },
        { "ts", "text/x-typescript" },
        { "tsv", "text/tab-separated-values" },
        { "ttf", "font/ttf" },
        { "txt", "text/plain" },
        { "wasm", "application/wasm" },
        { "wav", "audio/wav" },
        { "webm", "video/webm" },
        { "webp", "image/webp" },
        { "woff", "font/woff" },
        { "woff2", "font/woff2" },
        { "xls", "application/vnd.ms-excel" },
        { "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
        { "xml", "application/xml" },
        { "xz", "application/x-xz" },
        { "yaml", "application/yaml" },
        { "yml", "application/yaml" },
        { "zip", "application/zip" },
        { "zst", "application/zstd" },
};

const char *mime_type(const char *name) {
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && i < ELEMENTSOF(types); i++)
                if (strcasecmp(dot + 1, types[i].extension) == 0)
                        return types[i].type;
        return "application/octet-stream";
}
