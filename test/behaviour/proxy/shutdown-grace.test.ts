/** How long requests in flight may take after a signal is what the environment says, for both commands. */
import { join } from 'node:path'
import t from 'tap'
import { shutdownGraceMs } from '../../../runtime/config/index.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'

t.test('a duration counts; without one the command decides', (t) => {
  t.equal(shutdownGraceMs({ GATEHOUSE_SHUTDOWN_GRACE: '50s' }), 50_000)
  t.equal(shutdownGraceMs({ GATEHOUSE_SHUTDOWN_GRACE: '' }), undefined)
  t.equal(shutdownGraceMs({}), undefined)
  t.end()
})

t.test('what is not a duration is refused at the start', async (t) => {
  const env = { ...process.env, GATEHOUSE_SHUTDOWN_GRACE: 'soon' }
  const file = join(
    t.testdir({ 'v.yaml': 'name: v\ngroupRef: g\nincomingAuth: {type: anonymous}\n' }),
    'v.yaml',
  )
  for (const args of [
    ['proxy', '--target-uri', 'http://127.0.0.1:9', '--port', '0', 'x'],
    ['vmcp', 'serve', '--config', file, '--port', '0'],
  ]) {
    const ran = await runGatehouse(args, '', env)
    t.equal(ran.code, 2)
    t.match(ran.stderr, /GATEHOUSE_SHUTDOWN_GRACE: must be a duration such as 30s/)
  }
})
