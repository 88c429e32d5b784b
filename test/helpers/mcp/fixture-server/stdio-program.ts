/**
 * Runs the fixture backend on standard input and output. Its argument selects the era: `session` (SDK 1), `stateless`
 * (SDK 2, which rejects the other) or `both` (SDK 2). Reports of its state go to standard error.
 */
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { makeServer as makeSessionServer } from './session-server.ts'
import { FixtureState } from './state.ts'
import { makeServer as makeStatelessServer } from './stateless-server.ts'

const era = process.argv[2] ?? 'session'
const state = new FixtureState()
state.events.on('waiting', () => console.error('fixture: waiting'))
state.events.on('cancelled', () => console.error('fixture: cancelled'))

if (era === 'session') await makeSessionServer(state).connect(new StdioServerTransport())
else serveStdio(() => announced(), { legacy: era === 'both' ? 'serve' : 'reject' })

/** A server that sends its own change notifications. Over HTTP the handler sends them. */
function announced() {
  const server = makeStatelessServer(state)
  const quiet = () => undefined
  // Only clients with sessions subscribe. Updates are sent to all clients.
  server.setRequestHandler('resources/subscribe', () => ({}))
  server.setRequestHandler('resources/unsubscribe', () => ({}))
  state.events.on('tools', () => void server.sendToolListChanged().catch(quiet))
  state.events.on('prompts', () => void server.sendPromptListChanged().catch(quiet))
  state.events.on('updated', (uri) => void server.sendResourceUpdated({ uri }).catch(quiet))
  return server
}
