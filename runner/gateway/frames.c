/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/frames.h"

#include <errno.h>

/* Returns the length of the whole head, once two bytes of it are known. */
static unsigned frame_head_size(const FrameReader *frames) {
        const unsigned code = frames->head[1] & 0x7f;

        return code < 126 ? 2 : code == 126 ? 4 : FRAME_HEAD_MAX;
}

/* Reads a complete head. */
static int frame_begin(FrameReader *frames) {
        const unsigned size = frames->head_length;
        uint64_t length = size == 2 ? frames->head[1] : 0;

        for (unsigned i = 2; i < size; i++)
                length = length << 8 | frames->head[i];
        if (length > INT64_MAX)
                return -EPROTO;
        frames->left = length;
        frames->head_length = 0;
        return 0;
}

/* Takes one byte of a head. */
static int frame_take_head(FrameReader *frames, char byte, Buffer *ret) {
        int r = pipe_buffer_add(ret, &byte, 1);

        frames->head[frames->head_length++] = (unsigned char)byte;
        if (r < 0 || frames->head_length < 2)
                return r;
        if (frames->head[1] & 0x80)
                return -EPROTO;
        return frames->head_length == frame_head_size(frames) ? frame_begin(frames) : 0;
}

int frames_feed(FrameReader *frames, Scrub *scrub, const char *data, size_t length, Buffer *ret) {
        int r = 0;

        while (r == 0 && length > 0) {
                size_t n = 1;

                if (frames->left == 0) {
                        r = frame_take_head(frames, *data, ret);
                } else {
                        n = frames->left < length ? (size_t)frames->left : length;
                        frames->left -= n;
                        r = scrub_feed(scrub, data, n, frames->left == 0, ret);
                }
                data += n;
                length -= n;
        }
        return r;
}
