/**
 * Types for undici modules without type declarations. Each module exports the member of the package index that has the
 * same name.
 */
declare module 'undici/lib/dispatcher/agent.js' {
  export { Agent as default } from 'undici'
}
declare module 'undici/lib/dispatcher/dispatcher.js' {
  export { Dispatcher as default } from 'undici'
}
declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici'
}
declare module 'undici/lib/api/api-request.js' {
  const request: object
  export default request
}
declare module 'undici/lib/core/connect.js' {
  export { buildConnector as default } from 'undici'
}
