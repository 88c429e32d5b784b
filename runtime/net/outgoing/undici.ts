/**
 * The parts of undici that requests need. Its index loads caches, mocks and WebSockets as well, a sixth of all that a server
 * loads when it starts. undici-parts.d.ts has the types.
 */
import request from 'undici/lib/api/api-request.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'

// The index of undici does the same. Of its five methods, only this one is used.
Object.assign(Dispatcher.prototype, { request })

export { Dispatcher }
export { default as Agent } from 'undici/lib/dispatcher/agent.js'
export { default as Pool } from 'undici/lib/dispatcher/pool.js'
export { default as buildConnector } from 'undici/lib/core/connect.js'
