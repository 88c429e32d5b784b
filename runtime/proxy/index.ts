/** The door of the proxy room: the transparent proxy in front of one MCP server, and the stdio bridge. */
export { type BridgeOptions, startStdioBridge, type StdioBridge } from './bridge/bridge.ts'
export { groupEnded, signalGroup } from './bridge/process-group.ts'
export type { Credential } from './credential.ts'
export { ProxyExchange } from './exchange.ts'
export type { RequestFacts, RequestObserver } from './request-log.ts'
export { type RunningCommand, type RunParts, runProxy } from './run.ts'
export { type ProxyAddress, type ProxyOptions, type RunningProxy, startProxy } from './server.ts'
export { runStdio, type StdioOptions } from './stdio/run.ts'
