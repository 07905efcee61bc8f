package pages

import (
	"crypto/tls"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

func tlsSettings(*testing.T, *dunlin.App) {
	dunlin.New(dunlin.Config{
		TLS: dunlin.TLSConfig{
			Development: true,
			Addr:        ":8443",
			Config: &tls.Config{
				CurvePreferences: []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256, tls.CurveP384},
				CipherSuites: []uint16{
					tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
					tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
					tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
				},
			},
		},
	})
}
