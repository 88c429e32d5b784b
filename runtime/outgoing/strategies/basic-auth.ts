/**
 * Sends a fixed user name and password in the Authorization header, the same for every caller.
 *
 * The user name and the password are encoded as UTF-8 in Unicode Normalization Form C. The user name must not contain a
 * colon, because the first colon ends it and the backend would authenticate another user.
 * Source: RFC 7617 sections 2 and 2.1.
 */
import { GatehouseError, type Violation } from '../../../schemas/index.ts'
import { type StrategyConfig, secretViolations, secretReader, type StrategyModule } from '../config.ts'
import { setHeader } from '../strategy.ts'

type Block = NonNullable<StrategyConfig['basicAuth']>

export const basicAuth: StrategyModule = {
  problems({ basicAuth: block }, parts) {
    if (!block) return [{ path: 'basicAuth', message: 'is required' }]
    const { username, password } = readers(block, parts)
    return [
      ...secretViolations('basicAuth.username', block.username, block.usernameEnv, parts, { required: true }),
      ...secretViolations('basicAuth.password', block.password, block.passwordEnv, parts, { required: true }),
      ...violationsOf('basicAuth.username', username(), { isName: true }),
      ...violationsOf('basicAuth.password', password(), { isName: false }),
    ]
  },
  make({ basicAuth: block = {} }, parts) {
    const { username, password } = readers(block, parts)
    return {
      type: 'basic_auth',
      perCaller: false,
      headerNames: ['authorization'],
      apply({ headers }) {
        setHeader(headers, 'authorization', credentials(username(), password()))
      },
      refused: () => false,
    }
  },
}

type Read = () => string | undefined

function readers(
  block: Block,
  parts: Parameters<StrategyModule['make']>[1],
): { readonly username: Read; readonly password: Read } {
  return {
    username: secretReader(block.username, block.usernameEnv, parts),
    password: secretReader(block.password, block.passwordEnv, parts),
  }
}

/** Throws BACKEND_AUTH_FAILED when a variable has changed at run time to a value that cannot be sent. */
function credentials(username: string | undefined, password: string | undefined): string {
  if (username === undefined || password === undefined) throw new GatehouseError('BACKEND_AUTH_FAILED')
  const [violation] = [
    ...violationsOf('basicAuth.username', username, { isName: true }),
    ...violationsOf('basicAuth.password', password, { isName: false }),
  ]
  if (violation !== undefined) throw new GatehouseError('BACKEND_AUTH_FAILED', { cause: violation.message })
  const pair = `${username}:${password}`.normalize('NFC')
  return `Basic ${Buffer.from(pair, 'utf8').toString('base64')}`
}

// oxlint-disable-next-line no-control-regex
const controlCharacter = /[\x00-\x1f\x7f]/

function violationsOf(
  field: string,
  value: string | undefined,
  { isName }: { readonly isName: boolean },
): readonly Violation[] {
  if (value === undefined) return []
  if (isName && value.includes(':')) return [{ path: field, message: 'must not contain a colon' }]
  if (controlCharacter.test(value.slice(-1)))
    return [{ path: field, message: 'must not end with a line break' }]
  return controlCharacter.test(value) ? [{ path: field, message: 'must not contain control characters' }] : []
}
