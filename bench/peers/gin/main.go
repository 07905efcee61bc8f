// Command gin is the reference service on gin.
package main

import (
	"io"
	"log"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.GET("/plaintext", func(c *gin.Context) {
		c.String(http.StatusOK, service.Greeting)
	})
	r.GET("/json", func(c *gin.Context) {
		c.JSON(http.StatusOK, service.Message{Message: service.Greeting})
	})
	r.GET("/users/:id", func(c *gin.Context) {
		c.String(http.StatusOK, c.Param("id"))
	})
	r.GET("/users/:id/:action", func(c *gin.Context) {
		c.JSON(http.StatusOK, service.UserAction{ID: c.Param("id"), Action: c.Param("action")})
	})
	r.POST("/echo", func(c *gin.Context) {
		body, err := io.ReadAll(c.Request.Body)
		if err != nil {
			c.AbortWithError(http.StatusBadRequest, err)
			return
		}
		c.Data(http.StatusOK, c.ContentType(), body)
	})
	r.GET("/api/v1/users", func(c *gin.Context) {
		c.JSON(http.StatusOK, service.Users())
	})
	r.GET("/headers", func(c *gin.Context) {
		c.Header("Cache-Control", service.CacheControl)
		c.String(http.StatusOK, service.Bucket)
	})
	r.GET("/sleep", func(c *gin.Context) {
		service.Sleep(c.Query("ms"))
		c.String(http.StatusOK, service.Greeting)
	})
	r.GET("/paths/*rest", func(c *gin.Context) {
		c.String(http.StatusOK, service.Greeting)
	})
	r.GET("/healthz", func(c *gin.Context) {
		c.String(http.StatusOK, "ok")
	})
	log.Fatal(r.RunListener(service.Listen("gin")))
}
