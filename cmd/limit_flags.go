package cmd

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/1bit-systems/pkg/packager"
)

// limitFlags raise what an archive may ask of this host.
type limitFlags struct{ packager.Limits }

func (l *limitFlags) addFlags(f *pflag.FlagSet) {
	f.Var((*countValue)(&l.Files), "max-files", fmt.Sprintf("entries that a package may have (default %d)", packager.DefaultFiles))
	f.Var((*sizeValue)(&l.Bytes), "max-bytes", fmt.Sprintf("size of its files together (default %s)", sizeText(packager.DefaultBytes)))
	f.Var((*countValue)(&l.Ratio), "max-ratio", fmt.Sprintf("bytes unpacked for each byte of the archive, beyond the first %s (default %d)", sizeText(packager.RatioSlack), packager.DefaultRatio))
	f.Var((*countValue)(&l.Path), "max-path", fmt.Sprintf("bytes that a path may have (default %d)", packager.DefaultPath))
	f.Var((*sizeValue)(&l.Window), "max-window", fmt.Sprintf("memory that decompressing may need (default %s)", sizeText(packager.MaxWindow)))
}

// limitHint names the flag that lets the archive in, "" if the error is about something else.
func limitHint(err error) string {
	var limit *packager.LimitError
	if !errors.As(err, &limit) {
		return ""
	}
	need := strconv.FormatInt(limit.Need, 10)
	if limit.Limit == packager.LimitBytes || limit.Limit == packager.LimitWindow {
		need = sizeText(limit.Need)
	}
	return fmt.Sprintf("if you trust it, raise the limit: 1bit pkg install --max-%s %s", limit.Limit, need)
}

// countValue is a flag with a number of at least 1.
type countValue int

func (v *countValue) Type() string   { return "number" }
func (v *countValue) String() string { return emptyZero(strconv.Itoa(int(*v))) }

func (v *countValue) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is no number from 1 to %d", s, math.MaxInt32)
	}
	*v = countValue(n)
	return nil
}

// sizeValue is a flag with a number of bytes, such as 64GiB.
type sizeValue int64

func (v *sizeValue) Type() string   { return "size" }
func (v *sizeValue) String() string { return emptyZero(strconv.FormatInt(int64(*v), 10)) }

func (v *sizeValue) Set(s string) error {
	digits := strings.TrimRight(s, "KMGTiB")
	shift, known := map[string]uint{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[s[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 1 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%q is no size such as 512MiB or 64GiB", s)
	}
	*v = sizeValue(n << shift)
	return nil
}

func emptyZero(s string) string {
	if s == "0" {
		return ""
	}
	return s
}

// sizeText spells a size as a flag takes it, rounded up to a whole unit of which there is more than one digit.
func sizeText(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= 16*unit.size || n >= unit.size && n%unit.size == 0 {
			whole := n / unit.size
			if n%unit.size != 0 {
				whole++
			}
			return strconv.FormatInt(whole, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
