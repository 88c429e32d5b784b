/**
 * The parts of undici that are needed for requests. The package index also loads caches, mocks and WebSockets, which
 * account for a sixth of all modules that a server loads at startup. For the types, see undici-parts.d.ts.
 */
import request from 'undici/lib/api/api-request.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'

// Sets the `request` method in the same way as the package index. Of the five methods, Gatehouse uses only this one.
Object.assign(Dispatcher.prototype, { request })

export { Dispatcher }
export { default as Agent } from 'undici/lib/dispatcher/agent.js'
export { default as Pool } from 'undici/lib/dispatcher/pool.js'
export { default as buildConnector } from 'undici/lib/core/connect.js'
