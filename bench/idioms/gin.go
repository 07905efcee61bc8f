package idioms

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"
)

// Gin returns the service on gin.
func Gin() *gin.Engine {
	r := gin.New()
	r.Use(gin.Recovery())

	r.GET("/users/:id", func(c *gin.Context) {
		id, err := strconv.Atoi(c.Param("id"))
		if err != nil {
			c.AbortWithStatus(http.StatusNotFound)
			return
		}
		u, ok := findUser(id)
		if !ok {
			c.AbortWithStatus(http.StatusNotFound)
			return
		}
		c.JSON(http.StatusOK, u)
	})

	admin := r.Group("/admin", ginKey)
	admin.POST("/users", ginCreate)
	admin.GET("/me", func(c *gin.Context) {
		c.String(http.StatusOK, c.GetString("user"))
	})
	return r
}

func ginCreate(c *gin.Context) {
	var in struct {
		Name string `json:"name" binding:"required"`
	}
	if err := c.ShouldBindJSON(&in); err != nil {
		c.JSON(http.StatusBadRequest, gin.H{"error": err.Error()})
		return
	}
	u := addUser(in.Name)
	c.Header("Location", fmt.Sprintf("/users/%d", u.ID))
	c.JSON(http.StatusCreated, u)
}

func ginKey(c *gin.Context) {
	name := ownerOf(c.GetHeader("X-Key"))
	if name == "" {
		c.AbortWithStatus(http.StatusUnauthorized)
		return
	}
	c.Set("user", name)
	c.Header("X-Served-For", name) // must be set before the handler writes
	c.Next()
}
