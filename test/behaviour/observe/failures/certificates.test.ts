/** Causes each failure of a server certificate. All views must report it alike. */
import t from 'tap'
import { certificateFailures } from '../../../helpers/failures/certificates.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, certificateFailures)
