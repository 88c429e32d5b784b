/** For both commands, the environment sets how long requests in flight may take after a signal. */
import { join } from 'node:path'
import t from 'tap'
import { shutdownGraceMs } from '../../../runtime/config/index.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'

t.test('a duration is used, and without one the command decides', (t) => {
  t.equal(shutdownGraceMs({ GATEHOUSE_SHUTDOWN_GRACE: '50s' }), 50_000)
  t.equal(shutdownGraceMs({ GATEHOUSE_SHUTDOWN_GRACE: '' }), undefined)
  t.equal(shutdownGraceMs({}), undefined)
  t.end()
})

t.test('an invalid duration is rejected at the start', async (t) => {
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
