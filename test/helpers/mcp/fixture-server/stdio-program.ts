/**
 * Runs the fixture backend on standard input and output. Its argument selects the era: `session` (SDK 1), `stateless`
 * (SDK 2, which rejects the other) or `both` (SDK 2). Reports of its state go to standard error. Loads only the SDK of
 * the era, because many tests start this program.
 */
import { FixtureState } from './state.ts'

const era = process.argv[2] ?? 'session'
const state = new FixtureState()
state.events.on('waiting', () => console.error('fixture: waiting'))
state.events.on('cancelled', () => console.error('fixture: cancelled'))

if (era === 'session') await serveSessions()
else await serveStateless()

async function serveSessions(): Promise<void> {
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js')
  const { makeServer } = await import('./session-server.ts')
  await makeServer(state).connect(new StdioServerTransport())
}

async function serveStateless(): Promise<void> {
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio')
  const { makeServer } = await import('./stateless-server.ts')
  serveStdio(() => announced(makeServer), { legacy: era === 'both' ? 'serve' : 'reject' })
}

/** A server that sends its own change notifications. Over HTTP the handler sends them. */
function announced(makeServer: typeof import('./stateless-server.ts').makeServer) {
  const server = makeServer(state)
  const quiet = () => undefined
  // Only clients with sessions subscribe. Updates are sent to all clients.
  server.setRequestHandler('resources/subscribe', () => ({}))
  server.setRequestHandler('resources/unsubscribe', () => ({}))
  state.events.on('tools', () => void server.sendToolListChanged().catch(quiet))
  state.events.on('prompts', () => void server.sendPromptListChanged().catch(quiet))
  state.events.on('updated', (uri) => void server.sendResourceUpdated({ uri }).catch(quiet))
  return server
}
