package linkage

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
)

const (
	cacheName = "/etc/ld.so.cache"
	maxCache  = 16 << 20

	oldCacheMagic = "ld.so-1.7.0"
	cacheMagic    = "glibc-ld.so.cache1.1"
	cacheHead     = 48
	cacheEntry    = 24
	oldCacheHead  = 16
	oldCacheEntry = 12
)

// cache returns the paths of every library that the host's cache knows.
func (f *finder) cache() map[string][]string {
	if f.cached == nil {
		f.cached = map[string][]string{}
		if file, err := f.open(cacheName); err == nil {
			defer file.Close()
			if b, err := io.ReadAll(io.LimitReader(file, maxCache)); err == nil {
				f.cached = parseCache(b)
			}
		}
	}
	return f.cached
}

// parseCache reads ldconfig's cache in its present form, alone or behind the
// one of before glibc 2.2 (glibc, sysdeps/generic/dl-cache.h). A damaged one
// yields what can be read of it: the loader too falls back to the folders.
// Libraries for processors with more abilities than the least (hwcaps) come
// last: they are for some hosts only, and the plain one beside them is for all.
func parseCache(b []byte) map[string][]string {
	paths, special := map[string][]string{}, map[string][]string{}
	if bytes.HasPrefix(b, []byte(oldCacheMagic)) && len(b) >= oldCacheHead {
		// The other form begins at the next multiple of eight.
		skip := oldCacheHead + oldCacheEntry*uint64(binary.LittleEndian.Uint32(b[12:]))
		skip = (skip + 7) &^ 7
		if skip > uint64(len(b)) {
			return paths
		}
		b = b[skip:]
	}
	if !bytes.HasPrefix(b, []byte(cacheMagic)) || len(b) < cacheHead {
		return paths
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if b[28]&3 == 3 {
		order = binary.BigEndian
	}
	count := min(uint64(order.Uint32(b[20:])), uint64(len(b)-cacheHead)/cacheEntry)
	text := func(off uint32) string {
		if uint64(off) >= uint64(len(b)) {
			return ""
		}
		rest := b[off:min(uint64(off)+maxInterp, uint64(len(b)))]
		i := bytes.IndexByte(rest, 0)
		if i < 0 {
			return ""
		}
		return string(rest[:i])
	}
	for i := range count {
		e := b[cacheHead+i*cacheEntry:][:cacheEntry]
		name, at := text(order.Uint32(e[4:])), text(order.Uint32(e[8:]))
		if name == "" || !strings.HasPrefix(at, "/") {
			continue
		}
		if hwcap := order.Uint64(e[16:]); hwcap != 0 {
			special[name] = append(special[name], at)
		} else {
			paths[name] = append(paths[name], at)
		}
	}
	for name, more := range special {
		paths[name] = append(paths[name], more...)
	}
	return paths
}
