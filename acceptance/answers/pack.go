package answers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
)

// A log-probability is a float32 that JSON spells out with seventeen digits, and
// with n_probs 1 twice: no general compressor finds that out, and they are half
// of what is left of an answer once its keys are gone. Packing takes them out.
// The text keeps a mark in the place of each.
const (
	markFloat = 0x01 // the next float
	markAgain = 0x02 // the same number as at the mark before

	leastDigits = 9 // length of the shortest number that is worth it
)

// pack takes the floats out of an answer. ok is false for one that has a mark's
// byte of its own, which no JSON has: it stays as it is.
func pack(raw []byte) (text []byte, floats []float32, ok bool) {
	if bytes.IndexByte(raw, markFloat) >= 0 || bytes.IndexByte(raw, markAgain) >= 0 {
		return nil, nil, false
	}
	text = make([]byte, 0, len(raw))
	var spelled [32]byte
	var last []byte
	for i := 0; i < len(raw); {
		n := digits(raw[i:])
		number := raw[i : i+n]
		switch {
		case n == 0:
			text = append(text, raw[i])
			n = 1
		case n < leastDigits:
			text = append(text, number...)
		case bytes.Equal(number, last):
			text = append(text, markAgain)
		default:
			v, err := strconv.ParseFloat(string(number), 32)
			if err != nil || !bytes.Equal(spell(spelled[:0], float32(v)), number) {
				text = append(text, number...)
				break
			}
			text = append(text, markFloat)
			floats = append(floats, float32(v))
			last = number
		}
		i += n
	}
	return text, floats, true
}

// digits tells how many bytes at the beginning may be a number without
// exponent.
func digits(b []byte) int {
	for i, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' {
			return i
		}
	}
	return len(b)
}

// spell writes a float32 as JSON libraries write one that they hold as a
// float64.
func spell(b []byte, f float32) []byte { return strconv.AppendFloat(b, float64(f), 'f', -1, 64) }

var errPacked = errors.New("the packed numbers do not fit the text")

// unpack puts the floats back. The answer has that many bytes.
func unpack(text []byte, floats []float32, length int) ([]byte, error) {
	raw := make([]byte, 0, min(length, 1<<20))
	var last []byte
	for _, c := range text {
		switch c {
		case markFloat:
			if len(floats) == 0 {
				return nil, errPacked
			}
			last = spell(last[:0], floats[0])
			floats = floats[1:]
			raw = append(raw, last...)
		case markAgain:
			raw = append(raw, last...)
		default:
			raw = append(raw, c)
		}
		if len(raw) > length {
			return nil, errPacked
		}
	}
	if len(floats) > 0 || len(raw) != length {
		return nil, errPacked
	}
	return raw, nil
}

// appendFloats writes the floats byte by byte of all: signs and exponents
// resemble each other, the rest is noise.
func appendFloats(b []byte, floats []float32) []byte {
	for shift := 24; shift >= 0; shift -= 8 {
		for _, f := range floats {
			b = append(b, byte(math.Float32bits(f)>>shift))
		}
	}
	return b
}

// readFloats reads n floats.
func readFloats(b []byte, n int) []float32 {
	floats := make([]float32, n)
	for i := range floats {
		floats[i] = math.Float32frombits(binary.BigEndian.Uint32([]byte{b[i], b[n+i], b[2*n+i], b[3*n+i]}))
	}
	return floats
}
