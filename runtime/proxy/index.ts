/** Public API of the proxy module: the transparent proxy in front of one MCP server, and the stdio bridge. */
export { authServerViolations } from './run/auth-server.ts'
export { type AttachedBridge, startAttachedBridge } from './stdio-server/attached/index.ts'
export { startStdioBridge, type StdioBridge } from './stdio-server/bridge.ts'
export {
  commandNotFound,
  exitCodeIn,
  groupEnded,
  signalGroup,
  watchGroups,
} from './stdio-server/process-group.ts'
export { getMachineToken, type MachineToken } from './run/machine-token.ts'
export { runProxy } from './run/run.ts'
export { runProgram } from './stdio-client/program.ts'
export { runStdio } from './stdio-client/run.ts'
export { startRelay } from './tunnel/relay-server.ts'
export { refuseOpenTunnel, runTunnel } from './tunnel/run.ts'
export { makeTunnelProvider, tunnelProviders } from './tunnel/settings.ts'
export { runPrimary } from './workers/primary.ts'
export { runWorker } from './workers/worker.ts'
