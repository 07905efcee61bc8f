// Topics of Dunlin (https://github.com/dunlinhttp/dunlin) over a WebSocket that reconnects and resumes.
//
//   import { Topics } from './topics.js'
//   const topics = new Topics('/socket')
//   const stop = topics.subscribe('orders/42', (text, id, topic) => …)   // stop() ends the subscription
//   topics.send('hello')                                          // to the server's own code; false if not connected
//
// Functions that may be set: onresync() after a loss: load the state anew. onrefused(topic, reason). onmessage(text) for
// messages without a topic. onstate(open) after a change of the connection. onexpired() when the authorization has ended (close code
// 3000): log in again; the client connects when its promise is resolved.
// Options: window, in ms: clients of a server that shuts down come back within it, unless the server names a time (5000). slowest, in
// ms: the longest time between attempts (30000).
export class Topics {
  #url; #options; #socket; #timer; #tries = 0; #last = '-'; #seen = new Map(); #topics = new Map()

  constructor(url, options = {}) {
    this.#url = new URL(url, location.href)
    this.#url.protocol = this.#url.protocol.replace('http', 'ws')
    this.#options = { window: 5000, slowest: 30000, ...options }
    this.#connect()
  }

  subscribe(topic, listener) {
    if (!this.#topics.has(topic)) {
      this.#topics.set(topic, new Set())
      this.send(`!subscribe - ${topic}`)
    }
    const listeners = this.#topics.get(topic)
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#topics.get(topic) === listeners) {
        this.#topics.delete(topic)
        this.#seen.delete(topic)
        this.send(`!unsubscribe ${topic}`)
      }
    }
  }

  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false
    this.#socket.send(message)
    return true
  }

  close() {
    clearTimeout(this.#timer)
    const socket = this.#socket
    this.#socket = null
    socket?.close()
  }

  #connect() {
    const socket = this.#socket = new WebSocket(this.#url)
    socket.onopen = () => {
      this.#tries = 0
      // One message for all topics: the last ID is the position in all of them.
      if (this.#topics.size > 0) this.send(`!subscribe ${this.#last} ${[...this.#topics.keys()].join(' ')}`)
      this.onstate?.(true)
    }
    socket.onmessage = ({ data }) => this.#socket === socket && this.#receive(data)
    socket.onclose = async ({ code, reason }) => {
      if (this.#socket !== socket) return
      this.onstate?.(false)
      if (code === 3000) {
        await this.onexpired?.()
        if (this.#socket !== socket) return
      }
      const wait = code === 1001 || code === 1012
        ? Math.random() * (/within (\d+) ms/.exec(reason)?.[1] ?? this.#options.window)
        : Math.min(this.#options.slowest, 250 * 2 ** this.#tries++) * (0.5 + Math.random())
      this.#timer = setTimeout(() => this.#connect(), wait)
    }
  }

  #receive(data) {
    if (typeof data !== 'string') return this.onmessage?.(data)
    let found = /^!(at|resync) (\S+)$/.exec(data)
    if (found) {
      this.#last = found[2]
      if (found[1] === 'resync') {
        this.#seen.clear()
        this.onresync?.()
      }
      return
    }
    found = /^!refused (.*)\n(.*)/.exec(data)
    if (found) {
      for (const topic of found[1].split(' ')) {
        this.#topics.delete(topic)
        this.onrefused?.(topic, found[2])
      }
      return
    }
    found = /^(([0-9a-f]{8})-(\d+)) (\S+)\n/.exec(data)
    if (!found) return this.onmessage?.(data)
    const [head, id, epoch, offset, topic] = found
    this.#last = id
    // It may have come before a cut, after an earlier message of another topic, or by a wildcard, too.
    if (this.#seen.size > 1000) this.#seen.clear()
    const seen = this.#seen.get(topic) ?? this.#seen.set(topic, {}).get(topic)
    if (seen[epoch] >= +offset) return
    seen[epoch] = +offset
    for (const [name, listeners] of this.#topics) {
      if (name !== topic && !(/^(.*\/)?\*$/.test(name) && topic.startsWith(name.slice(0, -1)))) continue
      for (const listener of listeners) listener(data.slice(head.length), id, topic)
    }
  }
}
