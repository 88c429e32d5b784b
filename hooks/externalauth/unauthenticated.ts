/** Type `unauthenticated`: the backend gets no credentials. Admission warns about it. */
import type { ExternalAuthModule } from './module.ts'

export const unauthenticated: ExternalAuthModule = {
  validate: () => [],
  secrets: () => [],
  toRuntime: () => ({ value: { type: 'unauthenticated' } }),
}
