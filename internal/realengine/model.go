package realengine

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// The kinds of model that WriteModel knows.
const (
	Plain = "plain" // every log-probability finite
	NaN   = "nan"   // every logit NaN: one token for ever
	NaN1  = "nan1"  // one vocabulary row NaN: fluent text over log-probabilities that are all null
	Trig  = "trig"  // NaN only for prompts that contain '~'
)

// Kinds lists the kinds of model.
func Kinds() []string { return []string{Plain, NaN, NaN1, Trig} }

// The shape of the model: two layers of llama's architecture.
const (
	modelWidth  = 64
	modelHeads  = 4
	kvHeads     = 2
	modelLayers = 2
	feedForward = 128
	vocabulary  = 258 // 256 bytes, begin, end

	queryKeyScale = 0.6 // attention sharp enough that answers differ by prompt
	ownEmbedding  = 0.1 // share of a token's own embedding taken from its output row: it stops loops
)

// WriteModel writes the tiny model of that kind as GGUF to w. Equal seeds give equal bytes on every machine.
//
// How it works: dimension 0 of every embedding is 4 and no block writes to it, so it is a constant that the
// output layer can use as a bias: rows outside printable ASCII get -30 on it and are never chosen.
func WriteModel(w io.Writer, kind string, seed int64) error {
	switch kind {
	case Plain, NaN, NaN1, Trig:
	default:
		return fmt.Errorf("model kind %q: want one of %v", kind, Kinds())
	}
	out := bufio.NewWriter(w)
	g := newGGUF()
	writeMetadata(g, kind)
	writeTensors(g, kind, seed)
	if err := g.writeTo(out); err != nil {
		return fmt.Errorf("write %s model: %w", kind, err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write %s model: %w", kind, err)
	}
	return nil
}

func writeMetadata(g *gguf, kind string) {
	g.string("general.architecture", "llama")
	g.string("general.name", "tiny-"+kind)
	g.uint32("llama.block_count", modelLayers)
	g.uint32("llama.context_length", 8192)
	g.uint32("llama.embedding_length", modelWidth)
	g.uint32("llama.feed_forward_length", feedForward)
	g.uint32("llama.attention.head_count", modelHeads)
	g.uint32("llama.attention.head_count_kv", kvHeads)
	g.float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
	g.uint32("llama.rope.dimension_count", modelWidth/modelHeads)
	g.uint32("llama.vocab_size", vocabulary)
	g.string("tokenizer.ggml.model", "gpt2")
	g.string("tokenizer.ggml.pre", "default")
	g.strings("tokenizer.ggml.tokens", append(byteTokens(), "<|bos|>", "<|eos|>"))
	types := make([]int32, vocabulary)
	for i := range types {
		types[i] = 1 // normal
		if i >= 256 {
			types[i] = 3 // control
		}
	}
	g.int32s("tokenizer.ggml.token_type", types)
	g.strings("tokenizer.ggml.merges", []string{"Ġ t"})
	g.uint32("tokenizer.ggml.bos_token_id", 256)
	g.uint32("tokenizer.ggml.eos_token_id", 257)
}

// byteTokens returns gpt2's printable stand-ins for the 256 bytes, in byte order.
func byteTokens() []string {
	tokens, extra := make([]string, 256), rune(256)
	for b := range rune(256) {
		r := b
		if b < 33 || (b > 126 && b < 161) || b == 173 {
			r, extra = extra, extra+1
		}
		tokens[b] = string(r)
	}
	return tokens
}

func writeTensors(g *gguf, kind string, seed int64) {
	n := &noise{rand.NewPCG(uint64(seed), 0)}
	embedding, output := n.values(modelWidth*vocabulary, 1), n.values(modelWidth*vocabulary, 0.3)
	for t := range vocabulary {
		in, out := embedding[t*modelWidth:][:modelWidth], output[t*modelWidth:][:modelWidth]
		in[0] = 4
		if t >= 32 && t < 126 {
			out[0] = 0
			for i := 1; i < modelWidth; i++ {
				out[i] -= float32(ownEmbedding * in[i])
			}
			continue
		}
		clear(out)
		out[0] = -30
	}
	switch kind {
	case NaN:
		poison(output)
	case NaN1:
		poison(output['A'*modelWidth:][:modelWidth])
	case Trig:
		poison(embedding['~'*modelWidth:][:modelWidth])
	}
	ones := make([]float32, modelWidth)
	for i := range ones {
		ones[i] = 1
	}
	const kvWidth = modelWidth / modelHeads * kvHeads
	g.tensor("token_embd.weight", embedding, modelWidth, vocabulary)
	g.tensor("output_norm.weight", ones, modelWidth)
	g.tensor("output.weight", output, modelWidth, vocabulary)
	for i := range modelLayers {
		block := fmt.Sprintf("blk.%d.", i)
		g.tensor(block+"attn_norm.weight", ones, modelWidth)
		g.tensor(block+"ffn_norm.weight", ones, modelWidth)
		g.tensor(block+"attn_q.weight", n.values(modelWidth*modelWidth, queryKeyScale), modelWidth, modelWidth)
		g.tensor(block+"attn_k.weight", n.values(modelWidth*kvWidth, queryKeyScale), modelWidth, kvWidth)
		g.tensor(block+"attn_v.weight", n.values(modelWidth*kvWidth, 0.15), modelWidth, kvWidth)
		g.tensor(block+"attn_output.weight", n.silentRow(modelWidth, 0.15), modelWidth, modelWidth)
		g.tensor(block+"ffn_gate.weight", n.values(modelWidth*feedForward, 0.15), modelWidth, feedForward)
		g.tensor(block+"ffn_up.weight", n.values(modelWidth*feedForward, 0.15), modelWidth, feedForward)
		g.tensor(block+"ffn_down.weight", n.silentRow(feedForward, 0.15), feedForward, modelWidth)
	}
}

func poison(values []float32) {
	for i := range values {
		values[i] = float32(math.NaN())
	}
}

// noise draws near-normal numbers by sums and products alone, so that they are the same on every processor.
type noise struct{ source *rand.PCG }

// values returns n numbers of mean 0 and standard deviation scale.
func (n *noise) values(count int, scale float64) []float32 {
	values := make([]float32, count)
	for i := range values {
		var sum uint64 // of twelve uniform numbers of 32 bits: its variance is one in units of 2^32
		for range 6 {
			u := n.source.Uint64()
			sum += u>>32 + u&math.MaxUint32
		}
		values[i] = float32((float64(sum)/(1<<32) - 6) * scale)
	}
	return values
}

// silentRow returns inputs × width weights whose first output is always 0: nothing writes to the constant.
func (n *noise) silentRow(inputs int, scale float64) []float32 {
	values := n.values(inputs*modelWidth, scale)
	clear(values[:inputs])
	return values
}
