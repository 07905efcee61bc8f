// Command gindb serves the routes that use a database with gin.
package main

import (
	"log"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	gin.SetMode(gin.ReleaseMode)
	ln, source := data.Listen("gin-db")
	r := gin.New()
	r.SetHTMLTemplate(data.Page)
	r.GET("/plaintext", func(c *gin.Context) {
		c.String(http.StatusOK, service.Greeting)
	})
	r.GET("/db", func(c *gin.Context) {
		row, err := source.One(c.Request.Context())
		writeJSON(c, row, err)
	})
	r.GET("/queries", func(c *gin.Context) {
		rows, err := source.Many(c.Request.Context(), data.Count(c.Query("n")))
		writeJSON(c, rows, err)
	})
	r.GET("/updates", func(c *gin.Context) {
		rows, err := source.Update(c.Request.Context(), data.Count(c.Query("n")))
		writeJSON(c, rows, err)
	})
	r.GET("/cached", func(c *gin.Context) {
		c.JSON(http.StatusOK, source.Cached(data.Count(c.Query("n"))))
	})
	r.GET("/fortunes", func(c *gin.Context) {
		fortunes, err := source.Fortunes(c.Request.Context())
		if err != nil {
			c.AbortWithError(http.StatusInternalServerError, err)
			return
		}
		c.HTML(http.StatusOK, data.Page.Name(), fortunes)
	})
	r.GET("/wait", func(c *gin.Context) {
		text, err := source.Wait(c.Query("us"))
		writeText(c, text, err)
	})
	r.GET("/slow", func(c *gin.Context) {
		writeText(c, service.Greeting, source.Slow(c.Request.Context()))
	})
	r.GET("/compute", func(c *gin.Context) {
		c.String(http.StatusOK, data.Compute())
	})
	r.GET("/healthz", func(c *gin.Context) {
		c.String(http.StatusOK, "ok")
	})
	log.Fatal(r.RunListener(ln))
}

func writeJSON(c *gin.Context, v any, err error) {
	if err != nil {
		c.AbortWithError(http.StatusInternalServerError, err)
		return
	}
	c.JSON(http.StatusOK, v)
}

func writeText(c *gin.Context, text string, err error) {
	if err != nil {
		c.AbortWithError(http.StatusInternalServerError, err)
		return
	}
	c.String(http.StatusOK, text)
}
