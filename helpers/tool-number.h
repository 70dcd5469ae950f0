/* SPDX-License-Identifier: Apache-2.0 */
/* Prints numbers with a fraction or exponent like Python prints a float: with the fewest digits
 * that read back as the same double. An exponent is used from 1e+16 and below 0.0001.
 *
 * A text of up to 15 digits is already in that form (DBL_DIG). Other texts are turned into a double
 * and back into digits by exact decimal arithmetic, doubling and halving several digits at a time.
 */
#pragma once

enum {
        DIGITS_MAX = 800,      /* the exact midpoint of two doubles has up to 767 */
        DIGITS_KEPT = 15,      /* every double except the smallest keeps them */
        DIGITS_ENOUGH = 17,    /* they tell any two doubles apart */
        POINT_PLAIN_MAX = 300, /* if the point is closer than this, doubles have full precision */
        POINT_RANGE_MAX = 400, /* if the point is farther than this, doubles are 0 or infinite */
        SHIFT_MAX = 59,        /* 10 * 2^59 fits into 64 bits */
        MANTISSA_BITS = 53,
        EXPONENT_MIN = -1021, /* for a fraction from 1/2 to 1 */
        EXPONENT_MAX = 1024,
};

/* The number 0.DIGITS * 10^point. The first and last digits are not 0. If count is 0, the number is
 * zero. */
typedef struct Decimal {
        int count;
        long point;
        unsigned char digits[DIGITS_MAX];
} Decimal;

typedef struct Double {
        uint64_t mantissa;
        int exponent; /* power of 2; 0 for zero */
} Double;

static void decimal_trim(Decimal *d) {
        while (d->count > 0 && d->digits[d->count - 1] == 0)
                d->count--;
        if (d->count == 0)
                d->point = 0;
}

/* Appends a digit. If there is no room, the last digit marks the remainder, so that the number does
 * not look like an exact tie. */
static void append_digit(Decimal *d, unsigned digit) {
        if (d->count < DIGITS_MAX)
                d->digits[d->count++] = (unsigned char)digit;
        else if (digit)
                d->digits[DIGITS_MAX - 1] |= 1;
}

/* --- exact arithmetic --- */

/* d * 2^bits, bits up to SHIFT_MAX */
static void double_by(Decimal *d, int bits) {
        unsigned char result[DIGITS_MAX + 20];
        unsigned at = sizeof(result);
        uint64_t carry = 0;

        for (int i = d->count; i-- > 0; carry /= 10) {
                carry += (uint64_t)d->digits[i] << bits;
                result[--at] = (unsigned char)(carry % 10);
        }
        for (; carry > 0; carry /= 10, d->point++)
                result[--at] = (unsigned char)(carry % 10);
        d->count = 0;
        for (; at < sizeof(result); at++)
                append_digit(d, result[at]);
        decimal_trim(d);
}

/* d / 2^bits, bits up to SHIFT_MAX */
static void halve_by(Decimal *d, int bits) {
        const uint64_t mask = ((uint64_t)1 << bits) - 1;
        Decimal result = { .point = d->point };
        uint64_t rest = 0;

        for (int i = 0; i < d->count || rest > 0; i++) {
                unsigned digit;

                rest = rest * 10 + (i < d->count ? d->digits[i] : 0);
                digit = (unsigned)(rest >> bits);
                rest &= mask;
                if (digit || result.count)
                        append_digit(&result, digit);
                else
                        result.point--;
        }
        *d = result;
        decimal_trim(d);
}

static void decimal_scale(Decimal *d, int bits) {
        for (; bits > SHIFT_MAX; bits -= SHIFT_MAX)
                double_by(d, SHIFT_MAX);
        for (; bits < -SHIFT_MAX; bits += SHIFT_MAX)
                halve_by(d, SHIFT_MAX);
        if (bits > 0)
                double_by(d, bits);
        else if (bits < 0)
                halve_by(d, -bits);
}

/* --- doubles --- */

/* Scales the number to between 1/2 and 1, and returns the exponent of 2 taken out. 8 is less than
 * 10, so no step overshoots. */
static int decimal_normalise(Decimal *d) {
        int exponent = 0;

        while (d->point > 0) {
                const int bits = d->point > 1 ? 3 * (int)(d->point - 1) : 1;

                exponent += bits;
                decimal_scale(d, -bits);
        }
        while (d->point < 0 || d->digits[0] < 5) {
                const int bits = d->point < 0 ? 3 * (int)-d->point : 1;

                exponent -= bits;
                decimal_scale(d, bits);
        }
        return exponent;
}

/* Rounds to the nearest whole number, or to the even one of two. The result is at most 2^53. */
static uint64_t round_whole(const Decimal *d) {
        uint64_t whole = 0;
        unsigned next;

        if (d->point < 0)
                return 0;
        for (int i = 0; i < d->point; i++)
                whole = whole * 10 + (i < d->count ? d->digits[i] : 0);
        next = d->point < d->count ? d->digits[d->point] : 0;
        return whole + (next > 5 || (next == 5 && (d->point + 1 < d->count || whole % 2)));
}

/* Finds the nearest double. Returns 0, or -1 if the number is too large. */
static int to_double(const Decimal *from, Double *ret) {
        Decimal d = *from;
        int exponent;

        *ret = (Double){ 0 };
        if (d.count == 0 || d.point < -POINT_RANGE_MAX)
                return 0;
        if (d.point > POINT_RANGE_MAX)
                return -1;
        exponent = decimal_normalise(&d);
        if (exponent < EXPONENT_MIN) {
                decimal_scale(&d, exponent - EXPONENT_MIN);
                exponent = EXPONENT_MIN;
        }
        decimal_scale(&d, MANTISSA_BITS);
        ret->mantissa = round_whole(&d);
        if (ret->mantissa >> MANTISSA_BITS) {
                ret->mantissa /= 2;
                exponent++;
        }
        ret->exponent = ret->mantissa ? exponent - MANTISSA_BITS : 0;
        return exponent > EXPONENT_MAX ? -1 : 0;
}

static void to_decimal(Double from, Decimal *ret) {
        unsigned char reverse[20];
        int count = 0;

        for (uint64_t rest = from.mantissa; rest > 0; rest /= 10)
                reverse[count++] = (unsigned char)(rest % 10);
        ret->count = 0;
        ret->point = count;
        while (count > 0)
                append_digit(ret, reverse[--count]);
        decimal_trim(ret);
        decimal_scale(ret, from.exponent);
}

/* --- the fewest digits --- */

/* Increments the last of count digits. */
static void count_up(Decimal *d, int count) {
        while (d->count < count)
                append_digit(d, 0);
        while (count > 0 && d->digits[count - 1] == 9)
                d->digits[--count] = 0;
        if (count > 0) {
                d->digits[count - 1]++;
        } else {
                d->digits[0] = 1;
                d->point++;
        }
        decimal_trim(d);
}

/* Keeps the first digits of d. Returns whether the rest rounds up: it is more than a half, or a
 * half after an odd digit. */
static int decimal_cut(const Decimal *d, int count, Decimal *ret) {
        const unsigned next = count < d->count ? d->digits[count] : 0;
        const int odd = count <= d->count && d->digits[count - 1] % 2;

        *ret = *d;
        if (ret->count > count)
                ret->count = count;
        decimal_trim(ret);
        return next > 5 || (next == 5 && (count + 1 < d->count || odd));
}

static int is_double(const Decimal *d, Double wanted) {
        Double value;

        return to_double(d, &value) == 0 && value.mantissa == wanted.mantissa &&
               value.exponent == wanted.exponent;
}

/* Below a power of two, doubles lie closer together than above it. So the nearest shorter text
 * below may belong to another double, although the one above, which is farther away, does not. */
static int decimal_shorten(const Decimal *exact, int count, Double wanted, Decimal *ret) {
        if (!decimal_cut(exact, count, ret) && is_double(ret, wanted))
                return 1;
        count_up(ret, count);
        return is_double(ret, wanted);
}

/* Shortens d. Returns 0, or -1 if no double is that large. */
static int decimal_shortest(Decimal *d) {
        Decimal exact;
        Double wanted;
        int count;

        if (to_double(d, &wanted) < 0)
                return -1;
        to_decimal(wanted, &exact);
        count = exact.point > -POINT_PLAIN_MAX ? DIGITS_KEPT : 1;
        while (count < DIGITS_ENOUGH && exact.count > count &&
               !decimal_shorten(&exact, count, wanted, d))
                count++;
        if (exact.count <= count)
                *d = exact;
        else if (count == DIGITS_ENOUGH && decimal_cut(&exact, count, d))
                count_up(d, count);
        return 0;
}

/* --- texts --- */

static int is_digit(char c) {
        return c >= '0' && c <= '9';
}

/* Reads a JSON number. Parts beyond the range of doubles may be inexact. */
static void read_decimal(Text text, Decimal *ret) {
        long exponent = 0, sign = 1;
        int fraction = 0;
        size_t i = 0;

        ret->count = 0;
        ret->point = 0;
        for (; i < text.length && text.at[i] != 'e' && text.at[i] != 'E'; i++) {
                const unsigned digit = (unsigned)(text.at[i] - '0');

                fraction |= text.at[i] == '.';
                if (!is_digit(text.at[i]))
                        continue;
                if (digit || ret->count)
                        append_digit(ret, digit);
                if (ret->count && !fraction)
                        ret->point++;
                if (!ret->count && fraction)
                        ret->point--;
        }
        for (; i < text.length; i++) {
                sign = text.at[i] == '-' ? -1 : sign;
                if (is_digit(text.at[i]) && exponent < (1L << 40))
                        exponent = exponent * 10 + (text.at[i] - '0');
        }
        ret->point += sign * exponent;
        decimal_trim(ret);
}

static void add_digits(Buffer *out, const Decimal *d, long from, long to) {
        for (long i = from; i < to; i++)
                add_byte(out, (char)('0' + (i >= 0 && i < d->count ? d->digits[i] : 0)));
}

static void add_with_exponent(Buffer *out, const Decimal *d) {
        const long exponent = d->point - 1, size = exponent < 0 ? -exponent : exponent;

        add_digits(out, d, 0, 1);
        if (d->count > 1) {
                add_byte(out, '.');
                add_digits(out, d, 1, d->count);
        }
        add_string(out, exponent < 0 ? "e-" : "e+");
        if (size < 10)
                add_byte(out, '0');
        add_number(out, (size_t)size);
}

static void add_plain(Buffer *out, const Decimal *d) {
        add_digits(out, d, d->point > 0 ? 0 : -1, d->point > 0 ? d->point : 0);
        add_byte(out, '.');
        add_digits(out, d, d->point, d->count > d->point ? d->count : d->point + 1);
}

/* Appends a JSON number with a fraction or exponent. Returns 0, or -1 if no double is that large
 * and the result would be infinity. */
static int add_float(Buffer *out, Text text) {
        Decimal d;

        read_decimal(text, &d);
        if (text.at[0] == '-')
                add_byte(out, '-');
        if ((d.count > DIGITS_KEPT || d.point > POINT_PLAIN_MAX || d.point < -POINT_PLAIN_MAX) &&
            decimal_shortest(&d) < 0) {
                add_string(out, "Infinity");
                return -1;
        }
        if (d.count > 0 && (d.point < -3 || d.point > 16))
                add_with_exponent(out, &d);
        else
                add_plain(out, &d);
        return 0;
}
