package answers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

// The head of a record is a skippable frame: magic number, size of what
// follows, and that. All numbers are little-endian.
const (
	headMagic = 0x184D2A51
	headSize  = 8 + headBody
	headBody  = 29 // id 8, length 4, sum 4, floats 4, compressed 4, flags 1, sum of the head 4
)

// Flags of a record.
const (
	flagDictionary = 1 // the answer is compressed without a dictionary, and its text is the one of those after it
	flagPacked     = 2 // the text has marks in the place of floats
)

// maxAnswer bounds one answer in bytes.
const maxAnswer = 64 << 20

// maxDictionary bounds a dictionary in bytes: what an encoder looks back at.
const maxDictionary = 128 << 10

type head struct {
	id         int
	length     int    // of the answer
	sum        uint32 // of the answer
	floats     int    // that were taken out; they stand before the text
	compressed int    // of the frame that follows
	flags      byte
}

func (h head) dictionary() bool { return h.flags&flagDictionary != 0 }
func (h head) packed() bool     { return h.flags&flagPacked != 0 }

func (h head) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, headMagic)
	b = binary.LittleEndian.AppendUint32(b, headBody)
	from := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.id))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.length))
	b = binary.LittleEndian.AppendUint32(b, h.sum)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.floats))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.compressed))
	b = append(b, h.flags)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b[from:]))
}

var errNoHead = errors.New("no head of a record")

// readHead reads a head from headSize bytes.
func readHead(b []byte) (head, error) {
	body := b[8:headSize]
	sumAt := headBody - 4
	if binary.LittleEndian.Uint32(b) != headMagic || binary.LittleEndian.Uint32(b[4:]) != headBody ||
		crc32.ChecksumIEEE(body[:sumAt]) != binary.LittleEndian.Uint32(body[sumAt:]) {
		return head{}, errNoHead
	}
	h := head{
		id:         int(binary.LittleEndian.Uint64(body)),
		length:     int(binary.LittleEndian.Uint32(body[8:])),
		sum:        binary.LittleEndian.Uint32(body[12:]),
		floats:     int(binary.LittleEndian.Uint32(body[16:])),
		compressed: int(binary.LittleEndian.Uint32(body[20:])),
		flags:      body[24],
	}
	if h.id < 0 || h.length > maxAnswer || h.floats > h.length/leastDigits || h.compressed > maxAnswer+maxAnswer/8 {
		return head{}, errNoHead
	}
	return h, nil
}

// newEncoder makes an encoder; dictionary nil: none.
func newEncoder(dictionary []byte) (*zstd.Encoder, error) {
	// The encoder copies the tables that it made of the dictionary for every
	// answer: 8 MB at the next level but one, a quarter of one here, for answers
	// that are a third longer then.
	options := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(2 * maxDictionary), zstd.WithEncoderCRC(true),
	}
	if dictionary != nil {
		options = append(options, zstd.WithEncoderDictRaw(0, dictionary))
	}
	e, err := zstd.NewWriter(nil, options...)
	if err != nil {
		return nil, fmt.Errorf("make an encoder of answers: %w", err)
	}
	return e, nil
}

func newDecoder(dictionary []byte) (*zstd.Decoder, error) {
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxAnswer)}
	if dictionary != nil {
		options = append(options, zstd.WithDecoderDictRaw(0, dictionary))
	}
	d, err := zstd.NewReader(nil, options...)
	if err != nil {
		return nil, fmt.Errorf("make a decoder of answers: %w", err)
	}
	return d, nil
}

// dictionaryOf takes what of a text serves as a dictionary: its end, since an
// encoder looks back from there.
func dictionaryOf(text []byte) []byte { return text[max(0, len(text)-maxDictionary):] }
