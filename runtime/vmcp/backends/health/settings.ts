import { timerMs } from '../../../../schemas/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import type { HealthSettings } from './monitor.ts'

/** Returns the settings for health checks and the circuit breaker. */
export function healthSettings(config: VmcpConfig): HealthSettings {
  const { failureHandling } = config.operational
  const { circuitBreaker } = failureHandling
  return {
    intervalMs: timerMs(failureHandling.healthCheckInterval),
    timeoutMs: timerMs(failureHandling.healthCheckTimeout),
    unhealthyThreshold: failureHandling.unhealthyThreshold,
    breaker: circuitBreaker.enabled
      ? {
          failureThreshold: circuitBreaker.failureThreshold,
          timeoutMs: timerMs(circuitBreaker.timeout),
        }
      : undefined,
  }
}
