/**
 * Sends a fixed bearer token, the same for every caller.
 * Source: docs/reference/specification/proxy-command.md (--remote-auth-bearer-token, bearerToken).
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { secretViolations, secretReader, type StrategyModule } from '../config.ts'
import { setBearer } from '../strategy.ts'

export const bearerToken: StrategyModule = {
  problems({ bearerToken: block }, parts) {
    if (!block) return [{ path: 'bearerToken', message: 'is required' }]
    const token = secretReader(block.token, block.tokenEnv, parts)()
    return [
      ...secretViolations('bearerToken.token', block.token, block.tokenEnv, parts, { required: true }),
      ...(token !== undefined && !/^[\x21-\x7e]+$/.test(token)
        ? [{ path: 'bearerToken.token', message: 'must be printable ASCII without spaces' }]
        : []),
    ]
  },
  make({ bearerToken: block = {} }, parts) {
    const read = secretReader(block.token, block.tokenEnv, parts)
    return {
      type: 'bearer_token',
      perCaller: false,
      headerNames: ['authorization'],
      apply(request) {
        const token = read()
        if (token === undefined) throw new GatehouseError('BACKEND_AUTH_FAILED')
        setBearer(request.headers, token)
      },
      refused: () => false,
    }
  },
}
