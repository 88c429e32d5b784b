/**
 * The error classes (schemas/errors.ts): a GatehouseError, with a code from the table, leaves a module; a ModuleError
 * stays inside. Interpreters in worker threads and pages in browsers import nothing, so they have their own classes.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { errors, GatehouseError, ModuleError } from '../../../schemas/index.ts'

const root = resolve(import.meta.dirname, '../../..')

const roots: readonly string[] = [
  'schemas/errors.ts GatehouseError',
  'schemas/errors.ts ModuleError',
  'runtime/console/web/data/client.ts ApiError',
  'runtime/console/web/try/draft.ts Invalid',
  'runtime/expr/starlark/builtins/json.ts JsonTextError',
  'runtime/expr/starlark/errors.ts StarlarkError',
  'runtime/expr/starlark/syntax/literals.ts LiteralError',
  'runtime/expr/template/meter.ts WorkLimitError',
  'runtime/expr/template/value.ts EvaluationError',
]

/** Errors that a caller catches by class. An error that is never caught by class is a GatehouseError. */
const modules: readonly string[] = [
  'hooks/server/workers.ts WorkerFailure',
  'runtime/authserver/model/oauth-error.ts OAuthError',
  'runtime/authserver/upstream/renewals.ts UpstreamTokenGone',
  'runtime/toolkit/local/session.ts UnwritableFile',
  'runtime/tools/registry/errors.ts EntryRejected',
  'runtime/tools/shell/client.ts ConversationOver',
  'runtime/tools/shell/client.ts ServerError',
  'runtime/toolkit/clients/convert/context.ts NotTaken',
  'runtime/kube/attachment.ts AttachRefused',
  'runtime/vmcp/backends/openapi/convert.ts DocumentRejected',
  'runtime/mcp/json/errors.ts JsonError',
  'runtime/net/outgoing/address-rule.ts AddressRefusedError',
  'runtime/net/outgoing/proxy-server.ts HttpProxyError',
  'runtime/net/outgoing/fetch.ts FetchRefusedError',
  'runtime/policy/remote/json-post.ts DecisionFailure',
  'runtime/vmcp/backends/transport/backend-answer.ts BackendAnswer',
  'runtime/vmcp/features/guardrails/scan/matches.ts ScanLimit',
  'runtime/oauth/dpop/proof.ts ProofRefused',
  'runtime/oauth/jwt.ts TokenRefused',
  'runtime/policy/limits/outage.ts Timeout',
  'runtime/proxy/stdio-client/call.ts BridgedSessionLost',
  'runtime/store/redis-client.ts ReplyError',
  'runtime/store/redis-link.ts Deadline',
  'runtime/vmcp/features/search/embedding-service.ts EmbeddingError',
  'runtime/vmcp/features/search/own-tools.ts ArgumentError',
  'runtime/vmcp/features/workflows/errors.ts StepError',
  'runtime/vmcp/features/workflows/errors.ts WorkflowError',
  'runtime/vmcp/features/workflows/errors.ts WorkflowTimeout',
  'schemas/cedar/engine.ts EngineFailure',
  'schemas/openapi/failures.ts OperationSkipped',
  'schemas/workflow/pattern.ts PatternError',
  'schemas/workflow/template/tree.ts TemplateError',
]

function classesExtending(base: string): string[] {
  return ['schemas', 'hooks', 'runtime', 'manifests'].flatMap((top) =>
    readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.includes('generated/'))
      .flatMap((name) => {
        const file = `${top}/${name}`
        const found = readFileSync(join(root, file), 'utf8').matchAll(
          new RegExp(`class (\\w+) extends ${base}\\b`, 'g'),
        )
        return [...found].map(([, className]) => `${file} ${className}`)
      }),
  )
}

t.test('errors: every error class extends one of the listed base classes', async (t) => {
  for (const base of ['Error', 'TypeError', 'RangeError', 'SyntaxError']) {
    const found = classesExtending(base)
    const others = found.filter((one) => !roots.includes(one))
    t.strictSame(others, [], `extends ${base}: use a code of schemas/errors.ts, or ModuleError`)
    if (base === 'Error') t.strictSame(found.toSorted(), roots.toSorted())
  }
})

t.test('errors: each subclass of ModuleError is listed', async (t) => {
  t.strictSame(classesExtending('ModuleError').toSorted(), modules.toSorted())
})

t.test('errors: the name is the name of the class, and the code is in the table', async (t) => {
  class Specific extends ModuleError {}
  const cause = new Error('why')
  t.match(new Specific('what', { cause }), { name: 'Specific', message: 'what', cause })
  t.equal(new GatehouseError('INTERNAL').message, errors.INTERNAL.text)
  t.notOk(new Specific() instanceof GatehouseError, 'callers outside the module get INTERNAL')
})

t.test('violations: one type, and one meaning of the name', async (t) => {
  const own = 'schemas/validation/violations.ts'
  for (const top of ['schemas', 'hooks', 'runtime', 'manifests']) {
    for (const name of readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })) {
      const file = `${top}/${name}`
      if (!name.endsWith('.ts') || name.includes('generated/') || file === own) continue
      const text = readFileSync(join(root, file), 'utf8')
      t.notMatch(text, /readonly path: string;?\s+readonly message: string/, `${file}: use Violation`)
      t.notMatch(
        text,
        /^(?:export )?(?:interface Violation|class Violation|type Violation =)/m,
        `${file}: declares its own Violation`,
      )
    }
  }
})
