/** A wish to be taken off in languages that no model reads: a person looks at it. */
const foreign_wishes =
  /отпи[сш]|отказ(?:аться|ываюсь) от (?:рассылки|подписки)|(?:удалите|уберите|исключите) (?:меня|мой|наш|нас)|не (?:пишите|присылайте|отправляйте)|відпис|видаліть мене|не пишіть|abonelikten|listeden çık|listenizden çıkar|(?:bir daha|artık) (?:yazma|mail|e-posta)|退[订訂]|取消[订訂][阅閱]|不要再(?:发|發|联系|聯繫)|別再|配信(?:停止|を?停止|解除)|購読(?:解除|中止)|送(?:信|付)?(?:しない|らない)で|수신 ?거부|구독 ?(?:취소|해지)|보내지 ?마|הסי?ר(?:ו|י|ה)? (?:אותי|אותנו)|להסיר אותי|אל תשלח|إلغاء الاشتراك|(?:أزل|احذف|أزيلو|احذفو)\S{0,6}|لا ترسل|διαγρ[αά][φψ]|απεγγραφ|μη(?:ν)? (?:μου |μας )?(?:στέλν|γράφ)|सदस्यता (?:समाप्त|रद्द)|ना भेजें|मत भेज|ยกเลิกการ(?:รับ|สมัคร)|wypis|usu[nń]\S{0,20} .{0,40}(?:adres|list|mnie)|rezygnuj|odhlas|odhlás|vyřa[dď]|vyraďte|poista\S{0,20} .{0,40}(?:lista|minut|osoite)|peruut\S{0,20} tilau|leirat|töröl|ne (?:írjanak|küldj)|dezabon|(?:ștergeți|stergeti|scoateți|scoateti)|ta bort mig|avregistrera|avprenumerera|afmeld|uitschrijv|(?:haal|verwijder)\S{0,20} .{0,40}(?:mij|me|ons|adres|lijst)|afmeld mig|fjern (?:meg|mig)|meld (?:meg|mig) (?:av|fra)|hủy đăng ký|berhenti berlangganan|odjav|ukloni/iu;

const most_read = 8_000;

export const mayWishInAnyLanguage = (text: string): boolean => foreign_wishes.test(text.slice(0, most_read));
