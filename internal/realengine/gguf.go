package realengine

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
)

// The value kinds of GGUF version 3 that the model needs.
const (
	ggufUint32  = 4
	ggufInt32   = 5
	ggufFloat32 = 6
	ggufString  = 8
	ggufArray   = 9
)

const ggufAlignment = 32

// gguf collects the parts of a GGUF file: keys, tensor descriptions and tensor data.
type gguf struct {
	keys, infos, data   bytes.Buffer
	keyCount, infoCount uint64
}

func newGGUF() *gguf { return &gguf{} }

func (g *gguf) key(name string, kind uint32, values ...any) {
	g.keyCount++
	put(&g.keys, name, kind)
	put(&g.keys, values...)
}

func (g *gguf) uint32(name string, v uint32)   { g.key(name, ggufUint32, v) }
func (g *gguf) float32(name string, v float32) { g.key(name, ggufFloat32, v) }
func (g *gguf) string(name, v string)          { g.key(name, ggufString, v) }
func (g *gguf) int32s(name string, v []int32) {
	g.key(name, ggufArray, uint32(ggufInt32), uint64(len(v)), v)
}

func (g *gguf) strings(name string, v []string) {
	g.key(name, ggufArray, uint32(ggufString), uint64(len(v)))
	for _, s := range v {
		put(&g.keys, s)
	}
}

// tensor adds a tensor of float32 values.
func (g *gguf) tensor(name string, values []float32, shape ...uint64) {
	g.infoCount++
	put(&g.infos, name, uint32(len(shape)), shape, uint32(0), uint64(g.data.Len()))
	put(&g.data, values)
	align(&g.data)
}

func (g *gguf) writeTo(w io.Writer) error {
	var head bytes.Buffer
	head.WriteString("GGUF")
	put(&head, uint32(3), g.infoCount, g.keyCount)
	head.Write(g.keys.Bytes())
	head.Write(g.infos.Bytes())
	align(&head)
	if _, err := w.Write(head.Bytes()); err != nil {
		return err
	}
	_, err := w.Write(g.data.Bytes())
	return err
}

// put appends values in little-endian order; strings get their length in front.
func put(b *bytes.Buffer, values ...any) {
	for _, value := range values {
		switch v := value.(type) {
		case string:
			b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(v))))
			b.WriteString(v)
		case uint32:
			b.Write(binary.LittleEndian.AppendUint32(nil, v))
		case uint64:
			b.Write(binary.LittleEndian.AppendUint64(nil, v))
		case float32:
			b.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		case []uint64:
			for _, e := range v {
				put(b, e)
			}
		case []int32:
			for _, e := range v {
				put(b, uint32(e))
			}
		case []float32:
			raw := make([]byte, 0, 4*len(v))
			for _, e := range v {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(e))
			}
			b.Write(raw)
		}
	}
}

func align(b *bytes.Buffer) {
	b.Write(make([]byte, (ggufAlignment-b.Len()%ggufAlignment)%ggufAlignment))
}
