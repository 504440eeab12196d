package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// text is a scalar of the file, expanded.
type text struct {
	value  string
	quoted bool // it was written as text, not as a number
}

var durationType = reflect.TypeFor[time.Duration]()

// set reads t into v, a scalar. unit is the field's unit tag.
func (t text) set(v reflect.Value, unit string) error {
	if v.Type() == durationType {
		d, err := parseDuration(t.value)
		v.SetInt(int64(d))
		return err
	}
	if unit == "bytes" {
		n, err := parseSize(t.value)
		v.SetInt(n)
		return err
	}
	kind := v.Kind()
	if t.quoted && kind != reflect.String {
		return fmt.Errorf("must be %s, without quotes", wanted(v.Type(), unit))
	}
	if kind == reflect.String {
		v.SetString(t.value)
		return nil
	}
	if kind == reflect.Bool {
		v.SetBool(t.value == "true")
		if t.value != "true" && t.value != "false" {
			return errors.New("must be true or false")
		}
		return nil
	}
	if kind == reflect.Float64 {
		f, err := strconv.ParseFloat(t.value, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return errors.New("must be a number")
		}
		v.SetFloat(f)
		return nil
	}
	n, err := parseInt(t.value)
	if err == nil && v.OverflowInt(n) {
		err = errors.New("is too large")
	}
	v.SetInt(n)
	return err
}

// wanted says in words what a value of t looks like.
func wanted(t reflect.Type, unit string) string {
	switch kind := t.Kind(); {
	case t == durationType:
		return "a duration such as 500ms, 5s or 2m"
	case unit == "bytes":
		return "a size such as 64KiB"
	case kind == reflect.Bool:
		return "true or false"
	case kind == reflect.Float64:
		return "a number"
	case isNumber(kind):
		return "a whole number"
	case kind == reflect.Slice:
		return "a list"
	case kind == reflect.Struct || kind == reflect.Map:
		return "a mapping"
	default:
		return "text"
	}
}

// isNumber reports whether a value of the kind is a number. The config structs
// have numbers of no other kinds.
func isNumber(kind reflect.Kind) bool {
	return kind == reflect.Int || kind == reflect.Int64 || kind == reflect.Float64
}

// parseInt reads decimal digits only: YAML 1.1 takes 010 for eight, YAML 1.2
// for ten.
func parseInt(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("is too large")
	case err != nil || s != strconv.FormatInt(n, 10):
		return 0, errors.New("must be a whole number")
	}
	return n, nil
}

// parseDuration reads a Go duration that is not negative.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	_, number := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && number == nil:
		return 0, fmt.Errorf("needs a unit: %ss, %sms, %sm or %sh", s, s, s, s)
	case err != nil && strings.HasSuffix(s, "d"):
		return 0, errors.New("the longest unit of a duration is h: write 24h for a day")
	case err != nil:
		return 0, errors.New("must be a duration such as 500ms, 5s or 2m")
	case d < 0:
		return 0, errors.New("must not be negative")
	}
	return d, nil
}

// units of sizes, in bytes. Those of 1000 are refused rather than guessed at:
// half of their users mean 1024.
var units = map[string]uint64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

// parseSize reads whole bytes: "64KiB", "1GiB", "4096".
func parseSize(s string) (int64, error) {
	unit := strings.TrimLeft(s, "0123456789. ")
	factor, known := units[unit]
	digits := strings.TrimRight(strings.TrimSuffix(s, unit), " ")
	n, err := strconv.ParseUint(digits, 10, 63)
	switch {
	case !known && digits != "" && unit != s:
		return 0, fmt.Errorf("%q is no unit of a size: write B, KiB, MiB, GiB or TiB", unit)
	case errors.Is(err, strconv.ErrRange) || err == nil && n > math.MaxInt64/factor:
		return 0, errors.New("is too large")
	case err != nil:
		return 0, errors.New("must be a whole number of bytes, such as 64KiB")
	}
	return int64(n * factor), nil //nolint:gosec // it was compared with the largest
}
