/** Type `unauthenticated`: sends no credentials to the backend. Admission warns about it. */
import type { ExternalAuthModule } from './module.ts'

export const unauthenticated: ExternalAuthModule = {
  validate: () => [],
  secrets: () => [],
  toRuntime: () => ({ value: { type: 'unauthenticated' } }),
}
