/** The door of the proxy room: the stdio bridge. */
export { type BridgeOptions, startStdioBridge, type StdioBridge } from './bridge/bridge.ts'
export { groupEnded, signalGroup } from './bridge/process-group.ts'
