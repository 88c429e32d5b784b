/**
 * Sends one header with a configured value, the same for every caller.
 * Source: docs/reference/specification/external-auth.md#headerInjection (headerInjection).
 */
import { GatehouseError, headerNameViolation, headerValueViolation } from '../../../schemas/index.ts'
import { secretViolations, secretReader, type StrategyModule } from '../config.ts'
import { setHeader } from '../strategy.ts'

export const headerInjection: StrategyModule = {
  problems({ headerInjection: block }, parts) {
    if (!block) return [{ path: 'headerInjection', message: 'is required' }]
    const { headerName = '', headerValue, headerValueEnv } = block
    const name = headerNameViolation(headerName, 'injected')
    const value = headerValueViolation(secretReader(headerValue, headerValueEnv, parts)() ?? '')
    return [
      ...(name === undefined ? [] : [{ path: 'headerInjection.headerName', message: name }]),
      ...secretViolations('headerInjection.headerValue', headerValue, headerValueEnv, parts, {
        required: true,
      }),
      ...(value === undefined ? [] : [{ path: 'headerInjection.headerValue', message: value }]),
    ]
  },
  make({ headerInjection: block = {} }, parts) {
    const name = (block.headerName ?? '').toLowerCase()
    const read = secretReader(block.headerValue, block.headerValueEnv, parts)
    return {
      type: 'header_injection',
      perCaller: false,
      headerNames: [name],
      apply(request) {
        const value = read()
        // The variable can become empty at run time. Do not send the request without the header in that case.
        if (value === undefined) throw new GatehouseError('BACKEND_AUTH_FAILED')
        setHeader(request.headers, name, value)
      },
      refused: () => false,
    }
  },
}
